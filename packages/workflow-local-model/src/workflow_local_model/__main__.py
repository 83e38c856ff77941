"""`python -m workflow_local_model serve NAME`: what `serving` starts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from workflow_local_model._catalogue import find_model
from workflow_local_model._errors import LocalModelError, ServerError
from workflow_local_model.serve._server import ERROR_PREFIX, run_server


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m workflow_local_model")
    commands = parser.add_subparsers(required=True)
    serve = commands.add_parser("serve", help="serve a model until standard input ends")
    serve.add_argument("name")
    serve.add_argument("--port", type=int, default=0, help="0 picks a free port (the default)")
    serve.add_argument("--threads", type=int)
    serve.add_argument("--cache", type=Path, help="the folder of the weights")
    options = parser.parse_args(arguments)
    try:
        run_server(
            find_model(options.name),
            cache=options.cache,
            port=options.port,
            threads=options.threads,
        )
    except ServerError as error:
        sys.stderr.write(f"{ERROR_PREFIX}{error.reason}\n")
        return 1
    except LocalModelError as error:
        sys.stderr.write(f"{ERROR_PREFIX}{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
