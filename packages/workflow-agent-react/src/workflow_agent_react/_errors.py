"""What goes wrong with tools.

WorkflowError
├── ToolDefinitionError    fix the tool's code: it can't be offered to a model
├── ToolClash              rename or drop one: two tools of one toolset have the same name
├── GuardError             fix the guard: it gave no decision, or changed what it judged
├── SandboxUnavailable     install bubblewrap, or ask for another sandbox mode
├── McpError               start the MCP server, mend its settings, or install the extra `mcp`
└── ToolError              tell the model: the call failed, the message says what to do next
    ├── BadArguments           the arguments don't fit the parameters
    └── OutsideWorkspace       the path leads out of the workspace
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workflow_protocol import WorkflowError


class ToolError(WorkflowError):
    """A tool call failed. The message is for the model: what is wrong and what to do next."""


class BadArguments(ToolError):
    """The arguments of a call don't fit the tool's parameters. `faults` holds all of them."""

    def __init__(self, faults: Sequence[str], parameters: Sequence[str]) -> None:
        self.faults = tuple(faults)
        lines = "".join(f"\n- {line}" for line in parameters) or "\n- (none)"
        super().__init__(f"{'; '.join(faults)}. Parameters:{lines}")


class OutsideWorkspace(ToolError):
    """A path leads out of the workspace, by itself or through a link."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path!r} is outside the workspace; use a path relative to the workspace, "
            "such as 'README.md'"
        )


class ToolDefinitionError(WorkflowError, TypeError):
    """A function can't be a tool. The message names it and how to mend it."""

    def __init__(self, fn: object, reason: str) -> None:
        self.fn = fn
        super().__init__(f"{getattr(fn, '__qualname__', fn)!r} can't be a tool: {reason}")


class ToolClash(WorkflowError, ValueError):
    """Two tools have one name, or a tool that was named isn't there. `names` holds which."""

    def __init__(self, names: Iterable[str], reason: str) -> None:
        self.names = tuple(names)
        super().__init__(f"{', '.join(map(repr, self.names))}: {reason}")


class GuardError(WorkflowError, TypeError):
    """A guard does not do what guards do, and its role ends. `guard` is which."""

    def __init__(self, guard: object, reason: str) -> None:
        self.guard = guard
        super().__init__(f"the guard {getattr(guard, '__qualname__', guard)!r} failed: {reason}")


class SandboxUnavailable(WorkflowError):
    """A sandbox was required and can't be had here. `reason` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"commands must run in a sandbox, but {reason}; install bubblewrap, or require none: "
            "sandbox='auto' in workspace_tools, `sandbox: auto` in workflow.yaml"
        )


class McpError(WorkflowError):
    """An MCP server can't be used. `server` is its URL or command, `reason` says why."""

    def __init__(self, server: str, reason: str) -> None:
        self.server = server
        self.reason = reason
        super().__init__(f"the MCP server {server!r} can't be used: {reason}")
