"""Git's own files in a workspace: where they are, and which of them make git run programs."""
