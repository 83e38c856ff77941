"""The known agents: how each is called and how its output is read."""
