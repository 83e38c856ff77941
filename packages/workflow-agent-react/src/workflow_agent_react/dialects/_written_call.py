"""Reads a call that stands in the text of a recorded reply, for people who look at a thread.

The tools that were offered are not in the record. So a call of the `xml` dialect whose arguments
have no names stays as it was written.
"""

from __future__ import annotations

import re
from dataclasses import replace

from workflow_agent_react.dialects._dialect import json_call, json_value
from workflow_agent_react.dialects._xml_call import Action, XmlFault
from workflow_agent_react.dialects._xml_reply import XmlReply, read_reply_text
from workflow_reactor import RESOLVE, NotOneValue, ToolCall, make_call

_FIRST_PART = re.compile(r"<(action|final_answer)\s*+>", re.IGNORECASE)
_TAGS = re.compile(r"</?thought\s*+>", re.IGNORECASE)


def read_written_call(text: str, round: int) -> tuple[str, ToolCall] | None:
    """Find the one call in a reply of the `json` or `xml` dialect.

    Args:
        text: what the model wrote, without native calls.
        round: which reply of the conversation it is.

    Returns:
        What the model said beside the call, and the call; nothing where the text has none. The
        arguments of the call are one JSON object, or a text in the dialect's own form.
    """
    if _FIRST_PART.search(text):
        try:
            found = read_reply_text(text)
        except XmlFault:
            return None
        call = _xml_call(found, round)
        return None if call is None else (_words_before(found.kept), call)
    try:
        call = json_call(json_value(text), round)
    except NotOneValue:
        return None
    return None if call is None else ("", call)


def _xml_call(found: XmlReply, round: int) -> ToolCall | None:
    if found.action is not None:
        return _action_call(found.action, round)
    if found.answer is None:
        return None
    call = make_call(RESOLVE, found.answer, round=round, index=0)
    return replace(call, arguments=found.answer, fault="") if call.fault else call


def _action_call(action: Action, round: int) -> ToolCall:
    call = make_call(action.name, dict(action.named), round=round, index=0)
    return replace(call, arguments=action.source) if action.positional else call


def _words_before(kept: str) -> str:
    """The thoughts that stand before the action or answer, without their tags."""
    found = _FIRST_PART.search(kept)
    words = kept[: found.start()] if found is not None else kept
    return _TAGS.sub("", words).strip()
