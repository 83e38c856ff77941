"""What goes out: the conversation, the tools and the bytes of a request."""
