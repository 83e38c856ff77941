"""`model …`: the models that run on this machine."""

from __future__ import annotations

from uwf.arguments._group import CommandGroup
from uwf.arguments._types import count, port


def add_model_commands(above: CommandGroup) -> None:
    """Add `model` and its commands."""
    add = above.group("model", "work with embedded models: list, pull, serve")
    add("list", "_model:list_models", "list the embedded models", example="")
    pull = add(
        "pull", "_model:pull_model", "download a model and verify it", example="smollm2-135m"
    )
    serve = add(
        "serve",
        "_model:serve_model",
        "serve a model on this machine until Ctrl-C",
        example="--port 8080",
    )
    for sub in (pull, serve):
        sub.add_argument(
            "name", nargs="?", metavar="model", help="the model (default: the recommended one)"
        )
    serve.add_argument(
        "--port", type=port, default=8080, help="the port. 0 picks a free one (default: 8080)"
    )
    serve.add_argument(
        "--threads",
        type=count,
        metavar="N",
        help="the number of threads (default: one per processor, at most 4)",
    )
