"""The files of a workspace: opening, reading, changing, listing and searching them."""
