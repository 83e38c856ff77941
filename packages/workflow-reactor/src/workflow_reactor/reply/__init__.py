"""What comes back: from a reply's bytes to one message, whatever shape they have."""
