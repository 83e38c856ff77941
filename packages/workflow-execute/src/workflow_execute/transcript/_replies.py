"""What a recorded model call says: a chat completion, or an agent's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from workflow_protocol import Usage
from workflow_reactor import RESOLVE, NotAReply, Profile, ToolCall, read_reply

WrittenCallReader = Callable[[str, int], tuple[str, ToolCall] | None]
"""Finds the call that a dialect writes into a reply's text: gives what stands beside it, and the
call. `workflow_agent_react.read_written_call` is one."""

_PROFILE = Profile(text_tool_calls=True)


class _Model(msgspec.Struct):
    model: str = ""


class _AgentWords(msgspec.Struct):
    """The record of an agent's run: what it said, what went wrong, and what it took."""

    text: str
    how: str = "done"
    words: str = ""
    usage: Usage = Usage()


class SaidReply(msgspec.Struct, frozen=True, kw_only=True):
    """What was said in one round."""

    text: str = ""
    reasoning: str = ""
    calls: Sequence[ToolCall] = ()
    model: str = ""
    finish: str = ""
    usage: Usage = Usage()
    fault: str = ""
    is_readable: bool = True


def read_said(
    data: bytes,
    round: int,
    *,
    has_calls: bool,
    written_call: WrittenCallReader | None = None,
) -> SaidReply:
    """Read the record of a model call.

    A chat completion is read as the loops read it. An object with `text`, and perhaps `usage`,
    `how` and `words`, is an agent's run. Whatever else an adapter records is shown as it is.

    Args:
        has_calls: results of the round's calls are recorded, so its text has some. Else only a
            result is looked for in it: an answer may look like a call.
    """
    try:
        reply = read_reply(data, Profile(), round=round)
    except NotAReply as fault:
        return _read_agent(data) or SaidReply(
            text=data.decode("utf-8", "replace"), fault=str(fault), is_readable=False
        )
    text, calls = reply.text, reply.tool_calls
    if not calls and text:
        text, calls = _calls_in_text(data, text, round, has_calls, written_call)
    return SaidReply(
        text=text,
        reasoning=reply.reasoning,
        calls=calls,
        model=_model_of(data),
        finish=reply.finish,
        usage=reply.usage,
        fault=f"the reply {reply.broke_off}" if reply.broke_off else "",
    )


def _calls_in_text(
    data: bytes, text: str, round: int, has_calls: bool, written_call: WrittenCallReader | None
) -> tuple[str, Sequence[ToolCall]]:
    found = written_call(text, round) if written_call is not None else None
    if found is not None and (has_calls or found[1].name == RESOLVE):
        return found[0], (found[1],)
    if has_calls and (calls := read_reply(data, _PROFILE, round=round).tool_calls):
        return text, calls
    return text, ()


def _read_agent(data: bytes) -> SaidReply | None:
    try:
        run = msgspec.json.decode(data, type=_AgentWords)
    except msgspec.DecodeError:
        return None
    fault = "" if run.how == "done" else f"{run.how}: {run.words}".rstrip(": ")
    return SaidReply(text=run.text, usage=run.usage, fault=fault)


def _model_of(data: bytes) -> str:
    try:
        return msgspec.json.decode(data, type=_Model).model
    except (msgspec.DecodeError, UnicodeError):  # it is missing, or no text
        return ""
