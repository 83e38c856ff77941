"""`doctor`: ask a live endpoint what it can do, and keep the answers in `workflow.yaml`."""

from __future__ import annotations

import difflib
from pathlib import Path

from uwf._errors import Failed, UsageError
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output
from uwf.terminal._style import Styled
from uwf.terminal._table import Column
from uwf.terminal._view import shorten
from workflow_reactor import LlmProvider, shown_url
from workflow_reactor.doctor import Finding, examine, is_broken, profile_changes
from workflow_register import (
    Config,
    config_path,
    effective_config,
    find_home,
    load_config,
    open_provider,
    resolve_model,
    update_config,
)

_MARKS = {
    "yes": Styled("yes", "good"),
    "no": Styled("no", "bad"),
    "unclear": Styled("?", "warn"),
}
_COLUMNS = (
    Column(width=3),
    Column(width=22),
    Column(width=46),
    Column(width=7, align="right"),
    Column(folds=True),
)


def doctor(output: Output, target: str, *, write: bool, timeout_s: float) -> int:
    """Ask the endpoint behind a scene or a provider, show each answer, and write the profile."""
    home = find_home()
    scene = _resolve_scene(effective_config(home), target, home)
    name = resolve_model(effective_config(home), scene, path=config_path(home)).provider_name
    if write and name not in load_config(home).providers:
        raise UsageError(
            f"the provider {name!r} comes from environment variables, not from workflow.yaml; "
            "run `uwf setup` first"
        )
    return run_async(lambda: _examine(output, home, scene, name if write else None, timeout_s))


def _resolve_scene(config: Config, target: str, home: Path) -> str:
    """The scene or `provider/model` of this name, or a scene that this provider serves."""
    if target in config.models or not config.models or "/" in target:
        return resolve_model(config, target, path=config_path(home)).scene
    if target in config.providers:
        for scene, entry in config.models.items():
            if entry.model.partition("/")[0] == target:
                return scene
        raise UsageError(
            f"no scene uses the provider {target!r}, so there is no model to ask; "
            f"add one to `models` in {config_path(home)}"
        )
    known = sorted({*config.models, *config.providers})
    near = difflib.get_close_matches(target, known, n=1)
    guess = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    raise UsageError(f"no scene and no provider is called {target!r}; {guess}")


async def _examine(
    output: Output, home: Path, scene: str, write_to: str | None, timeout_s: float
) -> int:
    async with open_provider(scene, home=home) as provider:
        output.say(f"testing {provider.model} at {shown_url(provider.base_url)}")
        findings = await examine(
            provider, timeout_s=timeout_s, on_finding=lambda each: _print_finding(output, each)
        )
    if is_broken(findings):
        shown = shown_url(provider.base_url)
        raise Failed(1, f"{provider.model} at {shown} does not reply; the reason is above")
    changes = profile_changes(findings)
    _print_profile(output, provider, changes)
    if write_to is not None:
        update_config(home, {"providers": {write_to: {"profile": changes}}})
        output.say(f"{config_path(home)}: providers.{write_to}.profile is written")
    return 0


def _print_finding(output: Output, finding: Finding) -> None:
    value = {
        "probe": finding.probe,
        "asks": finding.asks,
        "answer": finding.answer,
        "words": finding.words,
        "elapsed_ms": finding.elapsed_ms,
    }
    cells = [
        _MARKS[finding.answer],
        finding.probe,
        finding.asks,
        Styled(f"{finding.elapsed_ms / 1000:.1f} s", "dim"),
        shorten(finding.words),
    ]
    output.table(_COLUMNS, [(value, cells)])


def _print_profile(output: Output, provider: LlmProvider, changes: dict[str, object]) -> None:
    """Print the profile as the file would have it, and mark what differs from what is used."""
    output.record(
        {"model": provider.model, "base_url": shown_url(provider.base_url), "profile": changes}
    )
    if output.json:
        return
    lines = ["", "profile:"]
    for name, value in changes.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        used = getattr(provider.profile, name)
        note = "" if used == value else f"    # now {str(used).lower()}"
        lines.append(f"  {name}: {text}{note}")
    output.data(None, "\n".join(lines))
