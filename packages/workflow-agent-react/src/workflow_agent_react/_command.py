"""A fixed command as a role or as a tool: a gate, such as a project's tests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from typing_extensions import TypeForm

from workflow_agent_react._errors import ToolError
from workflow_agent_react.tools._toolset import Toolset, make_toolset
from workflow_protocol import (
    Effect,
    Resolved,
    RoleDefinition,
    RoleFn,
    ThreadContext,
    WorkflowError,
    run_once,
    schema_of,
)

if TYPE_CHECKING:
    from workflow_agent_react.shell._sandbox import SandboxMode
    from workflow_agent_react.shell._shell import Shell

T = TypeVar("T")

Command = Sequence[str] | Callable[[ThreadContext], Sequence[str]]

_NOTES_CHARS = 1_000  # what is said behind the output: how it ended, which limits it met
_ENDING_S = 30.0  # to kill what is left, and to undo the sandbox

COMMAND_KEY = "command"
"""The journal's key of what a command came to."""


class CommandNotRun(WorkflowError):
    """The command of a role could not be run; the message says why."""


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the command of a role went."""

    exit_code: int | None
    """128 + n where signal n ended it, 127 where there is no such program; `None` where its time
    ran out."""
    passed: bool
    """Whether the exit code is 0."""
    output: str
    """Both streams in the order they were written, as a terminal would show them. Of much output
    the middle is left out, which it says there. The last line says how it ended, and whether in
    the sandbox: `[exit code 0, 2 s, sandbox]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAdapter:
    """An adapter that runs a command. Made by `command_adapter`."""

    command: Command
    """The program and its arguments, or a function of the thread that gives them."""
    shell: Callable[[], Shell]
    """Makes what runs it, when a role runs."""
    timeout_s: float
    """Seconds that it may take."""
    effect: Effect
    """What running it twice means."""

    def fault_of(self, role: RoleDefinition[Any]) -> str:
        """See `CheckedAdapter`."""
        if role.schema is CommandResult:
            return ""
        return "its adapter runs a command; give the role schema=CommandResult"

    def __call__(self, prompt: str, schema: TypeForm[T]) -> RoleFn[T]:
        """See `AdapterFn`."""
        del prompt

        async def role(ctx: ThreadContext) -> T:
            command = self.command
            words = _checked(command(ctx) if callable(command) else command)

            async def perform() -> bytes:
                return await self._run(ctx.start.workspace, words)

            json = await run_once(
                ctx.journal,
                COMMAND_KEY,
                perform,
                effect=self.effect,
                what="a command",
                details=shown(words),
                digest=hashlib.sha256(msgspec.json.encode(words)).hexdigest(),
            )
            value = schema_of(schema).restore(json)
            await ctx.journal.note(Resolved(value=value, json=json))
            return value

        return role

    async def _run(self, workspace: Path, words: Sequence[str]) -> bytes:
        try:
            ran = await self.shell().execute(workspace, words, timeout_s=self.timeout_s)
        except ToolError as error:
            raise CommandNotRun(f"{shown(words)}: {error}") from error
        return msgspec.json.encode(
            CommandResult(exit_code=ran.exit_code, passed=ran.exit_code == 0, output=ran.output)
        )


def command_adapter(
    command: Command,
    *,
    sandbox: SandboxMode = "auto",
    env: Mapping[str, str] | None = None,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    timeout_s: float = 600.0,
    max_output_bytes: int = 16_000,
    effect: Effect = Effect.UNSAFE,
) -> CommandAdapter:
    """Give an adapter that runs a command in the workspace: a gate, such as a project's tests.

    The role's schema is `CommandResult`. An exit code other than 0 is a result as any, for the
    table to decide on. The command is run once: what it came to is recorded. It runs as those of
    `shell_exec` do: without input, with a fixed environment, and nothing of it is left when it
    ends, when its time runs out, or when the thread is stopped or the process killed.

    Example:
        ```python
        tests = RoleDefinition(name="tests", schema=CommandResult)
        run_tests = command_adapter(["python3", "-m", "unittest"], effect=Effect.REPEATABLE)
        run = create_workflow(
            WorkflowDefinition(table={START: tests, tests: END}, result=tests),
            AdapterBinding(run_tests),
        )
        ```

    Args:
        command: the program and its arguments; or a pure function of the thread that gives them.
            For the shell's language: `["sh", "-c", "make && make test"]`.
        sandbox: run it in bubblewrap: where it works, never, or not at all without it. See
            `workspace_tools`.
        env: variables beside the few that commands always get.
        readable: folders that the sandbox would hide, such as a home folder's tools.
        writable: folders beside the workspace that it can write to in the sandbox.
        timeout_s: seconds that it may take; after that it is killed, and has not passed.
        max_output_bytes: what is kept of its output, half of it from the end. Later roles read it.
        effect: what running it twice means, which counts when a crash or a stop cuts it off. An
            `UNSAFE` one is run again only if a person says so. Tests and checks are `REPEATABLE`.

    The role raises `CommandNotRun` where the workspace is gone or no process can be made, and
    `OutcomeUnknown` where it was cut off and a person said that it may not run again.

    Raises:
        TypeError: the command is no list of text.
        ValueError: it is empty, or has a null character.
        SandboxUnavailable: a sandbox is required and doesn't work here.
    """
    if not callable(command):
        command = tuple(_checked(command))
    shell = _shell_maker(sandbox, env, readable, writable, max_output_bytes)
    return CommandAdapter(command=command, shell=shell, timeout_s=timeout_s, effect=effect)


def command_tool(
    name: str,
    command: Sequence[str],
    *,
    description: str,
    sandbox: SandboxMode = "auto",
    env: Mapping[str, str] | None = None,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    timeout_s: float = 600.0,
    max_output_bytes: int = 8_000,
    effect: Effect = Effect.UNSAFE,
) -> Toolset:
    """Give a tool that runs one fixed command in the workspace, such as a project's tests.

    The model can choose when it runs, and nothing else of it. A call of it succeeds when the exit
    code is 0; else it has failed, with the output as the reason. So a guard knows whether the
    tests passed: `call.history.succeeded("run_tests")`.

    Args:
        name: of the tool.
        command: the program and its arguments.
        description: what the model is told of it.
        sandbox: see `command_adapter`, as for the rest.
        env: variables beside the few that commands always get.
        readable: folders that the sandbox would hide.
        writable: folders beside the workspace that it can write to in the sandbox.
        timeout_s: seconds that it may take; after that it is killed, and has failed.
        max_output_bytes: what is kept of its output, half of it from the end.
        effect: what running it twice means; tests and checks are `REPEATABLE`.

    Raises:
        TypeError: the command is no list of text.
        ValueError: it is empty, or has a null character.
        ToolDefinitionError: the name is none that providers take.
        SandboxUnavailable: a sandbox is required and doesn't work here.
    """
    words = tuple(_checked(command))
    shell = _shell_maker(sandbox, env, readable, writable, max_output_bytes)

    async def run(ctx: ThreadContext) -> str:
        ran = await shell().execute(ctx.start.workspace, words, timeout_s=timeout_s)
        if ran.exit_code != 0:
            raise ToolError(ran.output)
        return ran.output

    run.__doc__ = description
    return make_toolset(
        run,
        effect=effect,
        timeout_s=timeout_s + _ENDING_S,
        max_result_chars=max_output_bytes + _NOTES_CHARS,
        name=name,
    )


def _shell_maker(
    sandbox: SandboxMode,
    env: Mapping[str, str] | None,
    readable: Sequence[Path],
    writable: Sequence[Path],
    max_output_bytes: int,
) -> Callable[[], Shell]:
    from workflow_agent_react.shell._sandbox import use_sandbox  # loads much, as in workspace_tools

    use_sandbox(sandbox if sandbox == "require" else "off")  # raises where it is required

    def shell() -> Shell:
        from workflow_agent_react.shell._sandbox import SandboxFolders
        from workflow_agent_react.shell._shell import Shell

        return Shell(
            sandbox=sandbox,
            env=dict(env or {}),
            folders=SandboxFolders(readable=tuple(readable), writable=tuple(writable)),
            max_output_bytes=max_output_bytes,
        )

    return shell


def shown(words: Sequence[str]) -> str:
    """The command as one would write it in a shell."""
    import shlex

    return shlex.join(words)


def _checked(command: object) -> Sequence[str]:
    """The words of a command.

    Raises:
        TypeError: it is no list of text.
        ValueError: it is empty, or has a null character.
    """
    if isinstance(command, str):
        raise TypeError(
            f"the command is the string {command!r}; give a list with a string for each argument, "
            'or ["sh", "-c", …] for the shell\'s language'
        )
    if not isinstance(command, list | tuple):
        raise TypeError(f"the command is of type {type(command).__name__}; give a list of strings")
    words = cast("Sequence[object]", command)
    if not words:
        raise ValueError("the command is empty; give a program and its arguments")
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"the command has {word!r} in it; give strings")
        if "\0" in word:
            raise ValueError(f"the command has a null character in {word!r}")
    return cast("Sequence[str]", words)
