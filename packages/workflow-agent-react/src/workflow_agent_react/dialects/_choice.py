"""Which dialect a role talks."""

from __future__ import annotations

from collections.abc import Sequence

from workflow_agent_react.dialects._dialect import Dialect, DialectName, JsonDialect, NativeDialect
from workflow_agent_react.dialects._xml_dialect import XmlDialect
from workflow_reactor import Profile, ToolDefinition


def choose_dialect(
    name: DialectName,
    profile: Profile,
    tools: Sequence[ToolDefinition],
    *,
    task: str,
    plain: bool = False,
) -> Dialect:
    """Make the dialect of that name; `auto` takes the one that the endpoint's profile names.

    Args:
        tools: `resolve` is the last.
        task: what the thread is about, for dialects that repeat it.
        plain: the result is text, and `resolve` has the schema of text.
    """
    match profile.dialect if name == "auto" else name:
        case "native":
            return NativeDialect(tools, plain=plain)
        case "json":
            return JsonDialect(tools, profile, task=task)
        case "xml":
            return XmlDialect(tools, task=task)
