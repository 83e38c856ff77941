"""The template `develop`: its values, what its code does, and its table."""
