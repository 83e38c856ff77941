"""Finding text in the files of a workspace."""
