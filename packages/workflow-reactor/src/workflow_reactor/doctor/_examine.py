"""The questions put to an endpoint one after the other, and the profile that they make."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import httpx
import msgspec

from workflow_protocol import JsonObject
from workflow_reactor._messages import AssistantMessage
from workflow_reactor._provider import LlmProvider, Profile
from workflow_reactor.doctor._probes import PROBES, Observed, Probe, with_results
from workflow_reactor.doctor._verdicts import Answer
from workflow_reactor.http._exchange import Exchange
from workflow_reactor.http._faults import ProviderFault, fault_of_error, fault_of_status
from workflow_reactor.reply._completion import NotAReply
from workflow_reactor.reply._reply import read_reply

_BUSY = frozenset({408, 409, 425, 429, 502, 503, 504, 529})
_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one probe showed."""

    probe: str
    asks: str
    answer: Answer
    words: str
    elapsed_ms: int


async def examine(
    provider: LlmProvider,
    *,
    timeout_s: float = 60.0,
    on_finding: Callable[[Finding], object] | None = None,
) -> list[Finding]:
    """Ask an endpoint some twenty-five small questions, one after the other.

    Where it doesn't even reply, that is the only finding.

    Args:
        timeout_s: seconds for each question.
        on_finding: hears of each as soon as it is there.
    """
    provider = replace(provider, timeout_s=min(timeout_s, provider.timeout_s))
    findings: list[Finding] = []
    seen: dict[str, Observed] = {}
    limit_field = provider.profile.max_tokens_field
    async with httpx.AsyncClient() as client:
        exchange = Exchange(provider, partial(client.send, stream=True))
        for probe in PROBES:
            started = time.monotonic()
            if not probe.same_as:
                called = seen[probe.after].reply if probe.after else None
                body = _body(provider, probe, limit_field, called)
                observed = await _observe(exchange, provider, body)
                if probe is PROBES[0] and observed.refused:  # perhaps for the limit's name
                    other = _LIMIT_FIELDS[limit_field == _LIMIT_FIELDS[0]]
                    again = await _observe(exchange, provider, _body(provider, probe, other))
                    if again.reply is not None:
                        observed, limit_field = again, other
                seen[probe.name] = observed
            verdict = probe.verdict(seen[probe.same_as or probe.name])
            findings.append(
                Finding(
                    probe=probe.name,
                    asks=probe.asks,
                    answer=verdict.answer,
                    words=" ".join(verdict.words.split()),
                    elapsed_ms=int(1000 * (time.monotonic() - started)),
                )
            )
            if on_finding is not None:
                on_finding(findings[-1])
            if probe is PROBES[0] and seen[probe.name].reply is None:
                break
    return findings


def is_broken(findings: Sequence[Finding]) -> bool:
    """Whether the endpoint doesn't reply at all."""
    return len(findings) < len(PROBES)


def profile_changes(findings: Sequence[Finding]) -> dict[str, Any]:
    """What the findings say of a profile, by the names of its fields; nothing of what is unclear.

    A tool counts as strict only where a wrong strict schema is refused: elsewhere the word is
    ignored, and its form would only make the model write nulls.
    """
    answers: Answers = {each.probe: each.answer for each in findings}
    schemas = answers.get("json_schema") == "yes"
    limits = [name for name in _LIMIT_FIELDS if _yes(answers, name)]
    only_asked = answers.get("parallel") == "no" and _yes(answers, "parallel_on")
    no_echo = answers.get("tool_ids_echo") == "no"
    form = _response_format(answers)
    found: dict[str, Any] = {
        "dialect": _dialect(answers, form),
        "response_format": form,
        "strict_schemas": _all_answers(answers, "tool_strict", "tool_strict_checked"),
        "refs": _refs(answers),
        "union_at_root": _as_bool(answers.get("json_schema_union")) if schemas else None,
        "forced_tool_choice": _forced(answers),
        "parallel_tool_calls": True if only_asked else None,
        "stop": _as_bool(answers.get("stop")),
        "max_tokens_field": limits[0] if limits else None,
        "echo_reasoning": _as_bool(answers.get("reasoning_echo")),
        "echo_call_ids": False if _yes(answers, "tool_result") and no_echo else None,
        "text_tool_calls": True if _yes(answers, "tool_in_text") else None,
    }
    return {name: value for name, value in found.items() if value is not None}


Answers = Mapping[str, Answer]


def _yes(answers: Answers, name: str) -> bool:
    return answers.get(name) == "yes"


def _as_bool(answer: Answer | None) -> bool | None:
    return None if answer in {None, "unclear"} else answer == "yes"


def _all_answers(answers: Answers, *names: str) -> bool | None:
    given = [_as_bool(answers.get(name)) for name in names]
    return False if False in given else (None if None in given else True)


def _response_format(answers: Answers) -> str | None:
    for name in ("json_schema", "json_object"):
        if answers.get(name) == "yes":
            return name
        if answers.get(name) != "no":
            return None
    return "none"


def _refs(answers: Answers) -> bool | None:
    names = ["tool_refs"]
    if answers.get("json_schema") == "yes":
        names += ["json_schema_refs", "json_schema_recursive"]
    return _all_answers(answers, *names)


def _forced(answers: Answers) -> str | None:
    for kind, name in (("named", "tool_named"), ("required", "tool_required")):
        if answers.get(name) == "yes":
            return kind
        if answers.get(name) != "no":
            return None
    return "none"


def _dialect(answers: Answers, response_format: str | None) -> str | None:
    sent_back = "tool_ids_echo" if _yes(answers, "tool_ids_echo") else "tool_result"
    native = _all_answers(answers, "tool", sent_back)
    if native is None:
        return None
    if native:
        return "native"
    if response_format is None:
        return None
    return "xml" if response_format == "none" else "json"


def _body(
    provider: LlmProvider, probe: Probe, limit_field: str, called: AssistantMessage | None = None
) -> bytes:
    asked = probe.body
    if probe.after:
        asked = with_results(asked, called, own_ids=probe.own_ids)
    fields: JsonObject = {
        "model": provider.model,
        **provider.extra_body,
        **provider.settings.fields(),
        "stream": False,
        **asked,
    }
    if probe.max_tokens is not None:
        fields[limit_field] = min(probe.max_tokens, provider.profile.max_tokens or probe.max_tokens)
    return _encode(fields)


async def _observe(exchange: Exchange, provider: LlmProvider, body: bytes) -> Observed:
    came = await exchange.post(body)
    if isinstance(came, ProviderFault):
        return Observed(failed=_words_without_key(came, provider))
    if came.status != 200:
        fault = fault_of_status(came.status, came.headers, came.body)
        return _as_observed(fault, provider, busy=came.status in _BUSY)
    try:
        return Observed(reply=read_reply(came.body, Profile()))
    except NotAReply as error:
        if error.error is None:
            return Observed(failed=str(error))
        fault = fault_of_error(error.error, came.headers)
        return _as_observed(fault, provider, busy=fault.status in _BUSY)


def _as_observed(fault: ProviderFault, provider: LlmProvider, *, busy: bool) -> Observed:
    words = _words_without_key(fault, provider)
    return Observed(failed=words) if busy else Observed(refused=words)


def _words_without_key(fault: ProviderFault, provider: LlmProvider) -> str:
    return fault.without(provider.secrets()).message[:300]
