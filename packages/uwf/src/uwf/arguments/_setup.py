"""`quickstart`, `setup` and `doctor`: from nothing to a model that replies."""

from __future__ import annotations

from pathlib import Path

from uwf.arguments._group import CommandGroup
from uwf.arguments._types import seconds


def add_setup_commands(add: CommandGroup) -> None:
    """Add `quickstart` and `setup`."""
    sub = add(
        "quickstart",
        "_quickstart:quickstart",
        "try everything once: set up a model and run an example",
        example="--workspace .",
    )
    sub.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="the project folder that the example describes (default: this folder)",
    )
    sub.add_argument(
        "--yes", dest="assume_yes", action="store_true", help="download the model without asking"
    )

    sub = add(
        "setup",
        "_setup:setup",
        "choose the default model and write it to workflow.yaml",
        example="--base-url http://127.0.0.1:8000/v1 --model qwen3 --api-key-env MY_KEY",
    )
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument("--local", nargs="?", const="", metavar="MODEL", help="use an embedded model")
    kind.add_argument("--base-url", metavar="URL", help="use an OpenAI-compatible endpoint")
    sub.add_argument("--model", help="the name of the model at the endpoint")
    sub.add_argument("--provider", metavar="NAME", help="a name for the endpoint in workflow.yaml")
    sub.add_argument(
        "--api-key-env", metavar="VAR", help="the environment variable that holds the API key"
    )


def add_doctor_command(add: CommandGroup) -> None:
    """Add `doctor`."""
    sub = add(
        "doctor",
        "_doctor:doctor",
        "test what the endpoint of a model supports",
        example="default --write",
    )
    sub.add_argument(
        "target",
        nargs="?",
        default="default",
        metavar="SCENE",
        help="a scene, a provider, or PROVIDER/MODEL (default: the default model)",
    )
    sub.add_argument("--write", action="store_true", help="write the result to workflow.yaml")
    sub.add_argument(
        "--timeout",
        dest="timeout_s",
        type=seconds,
        default=60.0,
        metavar="S",
        help="the limit in seconds for each test (default: 60)",
    )
