"""One run of one thread: the loop over the steps, what it commits, and how it ends."""
