"""A reply in the XML protocol: finds its one action, or its answer. Pure.

    <thought>…</thought>
    <action>read_file(path="a.txt", limit=5)</action>      or      <final_answer>…</final_answer>

What stands after the first action was invented before its result was known, so it is dropped.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from workflow_agent_react.dialects._xml_call import Action, CallScanner, XmlFault

_TAG = re.compile(r"<(/?)(thought|action|observation|final_answer)\s*+>", re.IGNORECASE)
_CALL_START = re.compile(r"\s*+\w[\w.\-]*+\s*+\(")
_ANSWER_END = re.compile(r"</final_answer\s*+>", re.IGNORECASE)
_REASONING = re.compile(r"\s*+<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class XmlReply:
    """What a reply comes to: an action, an answer, or neither."""

    action: Action | None = None
    answer: str | None = None
    kept: str = ""
    """The reply up to the end of its action or answer, with the closing tag."""
    complete: bool = True
    """Whether the end of the action or answer was seen."""


def read_reply_text(text: str) -> XmlReply:
    """Find the first action, or the answer that comes before any action.

    Raises:
        XmlFault: there is an action that can't be read, or an answer after an observation that
            the model made up.
    """
    reasoning = _REASONING.match(text)
    if reasoning is not None:
        text = text[reasoning.end() :]
    last_thought_end = max(
        (m.start() for m in _TAG.finditer(text) if _is_tag(m, "/thought")), default=-1
    )
    in_thought = False
    for tag in _TAG.finditer(text):
        if _is_tag(tag, "thought"):
            in_thought = True
        elif _is_tag(tag, "/thought"):
            in_thought = False
        elif _is_tag(tag, "action"):
            # In a thought only a whole call counts; there, a tag may be just talked about.
            if not in_thought or _CALL_START.match(text, tag.end()):
                return _action(text, tag)
        elif in_thought and tag.end() < last_thought_end:
            continue
        elif _is_tag(tag, "final_answer"):
            return _answer(text, tag)
        elif _is_tag(tag, "observation"):
            raise XmlFault("only I write observations; yours was dropped. Begin with an action")
    return XmlReply(kept=text)


def _is_tag(tag: re.Match[str], name: str) -> bool:
    return tag[1] + tag[2].lower() == name


def _action(text: str, tag: re.Match[str]) -> XmlReply:
    scanner = CallScanner(text, tag.end())
    action, complete = scanner.call()
    return XmlReply(
        action=action, kept=f"{text[: scanner.at].rstrip()}</action>", complete=complete
    )


def _answer(text: str, tag: re.Match[str]) -> XmlReply:
    start = CallScanner(text, tag.end()).skip_spaces()
    end = _json_end(text, start)
    close = _ANSWER_END.search(text, end)
    if close is not None:
        answer = text[start : close.start()]
    elif end > start:
        answer = text[start:end]
    else:
        answer = _without_cut_tag(text[start:], "</final_answer>")
    kept = f"{text[: tag.end()]}{answer}</final_answer>"
    return XmlReply(answer=answer.strip(), kept=kept, complete=close is not None)


def _json_end(text: str, start: int) -> int:
    """Where the JSON value at `start` ends: it may hold a closing tag in a string."""
    if text[start : start + 1] not in {"{", "["}:
        return start
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return start


def _without_cut_tag(text: str, tag: str) -> str:
    for length in range(len(tag) - 1, 0, -1):
        if text.endswith(tag[:length]):
            return text[:-length]
    return text
