"""What a person sees and types, and the signals that end a command."""
