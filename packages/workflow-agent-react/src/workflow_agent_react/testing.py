"""Guards for tests: one that decides from a script, and the calls that a guard of yours judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from workflow_agent_react._errors import GuardError
from workflow_agent_react._history import CallHistory, PastCall
from workflow_agent_react.guards._guards import Decision, ProposedCall
from workflow_protocol import Effect, JsonObject, ThreadContext
from workflow_reactor import ToolDefinition

__all__ = ["Judgement", "ScriptedGuard", "proposed_call"]

Judgement: TypeAlias = Decision | Callable[[ProposedCall], Decision]
"""A decision, or a function of the call that makes one."""


class ScriptedGuard:
    """A guard that decides from a script, and keeps the calls that it saw.

        guard = ScriptedGuard([Allow(), Deny("not on a Friday")])
        create_react_adapter(ReactAdapterConfig(llm=llm, toolset=tools, guards=[guard]))

    Args:
        decisions: one for each call, in the order in which they come; `resolve` is a call, too.
        otherwise: for the calls after these. Without it one more call is an error, so that a call
            that nobody expected shows.
    """

    version = "scripted"

    def __init__(
        self, decisions: Sequence[Judgement] = (), *, otherwise: Decision | None = None
    ) -> None:
        self._decisions = list(decisions)
        self._otherwise = otherwise
        self.calls: list[ProposedCall] = []
        """What it was asked about so far."""

    @property
    def names(self) -> list[str]:
        """The tools of these calls."""
        return [call.name for call in self.calls]

    def __call__(self, call: ProposedCall, ctx: ThreadContext, /) -> Decision:
        """Judge the next call.

        Raises:
            GuardError: there is no decision left. The role ends with it.
        """
        self.calls.append(call)
        number = len(self.calls)
        if number <= len(self._decisions):
            judged = self._decisions[number - 1]
            return judged(call) if callable(judged) else judged
        if self._otherwise is None:
            raise GuardError(
                self,
                f"call {number} came, but the script has {number - 1} decisions: "
                f"{call.name} {call.arguments}",
            )
        return self._otherwise


def proposed_call(
    name: str,
    arguments: JsonObject,
    *,
    history: Sequence[PastCall] = (),
    effect: Effect = Effect.UNSAFE,
) -> ProposedCall:
    """Make a call as a guard gets it, to test the guard as the plain function that it is.

        assert no_pushes(proposed_call("shell_exec", {"command": "git push"}), ctx) == Ask("Push?")

    Args:
        name: the tool's.
        arguments: what the model wrote.
        history: the calls of the turn before it.
        effect: the tool's effect class.
    """
    return ProposedCall(
        name=name,
        arguments=arguments,
        tool=ToolDefinition(
            name=name, description=name, parameters={"type": "object"}, effect=effect
        ),
        history=CallHistory(tuple(history)),
    )
