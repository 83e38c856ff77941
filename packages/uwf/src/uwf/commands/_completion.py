"""`completion`: the script for a shell, which asks `uwf` itself what may come next."""

from __future__ import annotations

from uwf.terminal._output import Output


def completion(output: Output, shell: str) -> int:
    """Print the script of a shell."""
    import argcomplete

    script = argcomplete.shellcode(["uwf"], shell=shell)  # pyright: ignore[reportPrivateImportUsage] - its public name
    output.data({"shell": shell, "script": script}, script)
    return 0
