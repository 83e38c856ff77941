"""The journal of a role's turn: what was done is on disk before it is used."""
