"""`quickstart`, `setup` and `doctor`: from nothing to a model that replies."""

from __future__ import annotations

import argparse
from pathlib import Path

from uwf.arguments._group import CommandGroup
from uwf.arguments._types import seconds


def add_setup_commands(add: CommandGroup) -> None:
    """Add `quickstart` and `setup`."""
    sub = add(
        "quickstart",
        "_quickstart:quickstart",
        "try everything once: a model mends a small project, is killed, and goes on",
        example="--yes",
    )
    sub.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="an empty folder for the small project (default: a new one)",
    )
    sub.add_argument(
        "--yes", dest="assume_yes", action="store_true", help="download the model without asking"
    )

    _add_setup(add)


def _add_setup(add: CommandGroup) -> None:
    sub = add(
        "setup",
        "_setup:setup",
        "choose a model and write it to workflow.yaml; asks on a terminal what is not given",
        example="--preset groq --model openai/gpt-oss-120b --test",
    )
    sub.add_argument(
        "--preset",
        metavar="NAME",
        help="a usual endpoint: openai, anthropic, google, openrouter, groq, mistral, deepseek, "
        "together, fireworks, xai, ollama, lmstudio, vllm, llamacpp, local",
    )
    sub.add_argument("--local", nargs="?", const="", metavar="MODEL", help="use an embedded model")
    sub.add_argument("--base-url", metavar="URL", help="use this OpenAI-compatible endpoint")
    sub.add_argument("--model", help="the name of the model at the endpoint")
    sub.add_argument("--provider", metavar="NAME", help="a name for the endpoint in workflow.yaml")
    sub.add_argument(
        "--api-key-env",
        metavar="VAR",
        help="the environment variable that holds the API key ('' if it needs none)",
    )
    sub.add_argument(
        "--scene",
        default="default",
        metavar="NAME",
        help="the scene that the model serves (default: default)",
    )
    sub.add_argument(
        "--test",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="ask the model for one word before it is written (default: only in the dialogue)",
    )
    sub.add_argument(
        "--list-models",
        action="store_true",
        help="print the models that the endpoint has, and write nothing",
    )


def add_completion_command(add: CommandGroup) -> None:
    """Add `completion`."""
    sub = add(
        "completion",
        "_completion:completion",
        "print the script that completes commands and names in your shell",
        example="bash",
    )
    sub.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    sub.epilog = f"""To install it, add one line to the file that your shell reads at its start:
  ~/.bashrc                   eval "$(uwf completion bash)"
  ~/.zshrc (after compinit)   eval "$(uwf completion zsh)"
  ~/.config/fish/config.fish  uwf completion fish | source

{sub.epilog}"""


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
