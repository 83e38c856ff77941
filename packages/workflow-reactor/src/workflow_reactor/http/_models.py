"""The models that an endpoint says it has."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import httpx
import msgspec

from workflow_reactor._errors import ProviderError, ProviderRefused, ProviderUnavailable
from workflow_reactor._provider import LlmProvider
from workflow_reactor._shown_url import shown_url
from workflow_reactor.http._exchange import Exchange, HttpReply
from workflow_reactor.http._faults import ProviderFault, fault_of_status
from workflow_reactor.http._session import open_transport

LIST_TIMEOUT_S = 15.0
MAX_LIST_BYTES = 8 * 2**20
MAX_NAME = 300


async def list_models(
    provider: LlmProvider,
    *,
    client: httpx.AsyncClient | None = None,
    timeout_s: float = LIST_TIMEOUT_S,
) -> list[str]:
    """Ask an endpoint once for the names of its models, by `GET <base URL>/models`, sorted.

    The list may be empty. What the provider says of its model is not used.

    Args:
        client: sends the request, and stays the caller's to close.
        timeout_s: seconds for the whole exchange.

    Raises:
        ProviderUnavailable: it may be there later: no connection, 429, 5xx.
        ProviderRefused: it isn't there, the key is wrong, or the reply is no list of models.
        ProviderConfigError: nothing can be sent with these settings.
    """
    asked = replace(provider, timeout_s=timeout_s, max_reply_bytes=MAX_LIST_BYTES)
    if client is not None:
        send = functools.partial(client.send, stream=True, follow_redirects=False)
        return await _ask(Exchange(asked, send, method="GET", path="models"), asked)
    transport = open_transport(provider.base_url)
    try:
        send = transport.handle_async_request
        return await _ask(Exchange(asked, send, method="GET", path="models"), asked)
    finally:
        await transport.aclose()


async def _ask(exchange: Exchange, provider: LlmProvider) -> list[str]:
    answer = await exchange.post(b"")
    if not isinstance(answer, HttpReply):
        raise _error(answer, provider)
    if not 200 <= answer.status < 300:
        raise _error(fault_of_status(answer.status, answer.headers, answer.body), provider)
    names = model_names(answer.body)
    if names is None:
        message = "the reply is no list of models"
        fault = ProviderFault(kind="permanent", message=message, status=answer.status)
        raise _error(fault, provider)
    return names


def model_names(body: bytes) -> list[str] | None:
    """The names in a list of models, sorted; `None` where it is none.

    It is `{"data": [{"id": …}]}`; some servers give the bare list, or `{"models": [{"name": …}]}`.
    """
    try:
        read: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if isinstance(read, Mapping):
        fields = cast("Mapping[str, object]", read)
        read = next((fields[key] for key in ("data", "models") if key in fields), None)
    if not isinstance(read, list):
        return None
    found = {_name(each) for each in cast("list[object]", read)}
    return sorted(name for name in found if name)


def _name(entry: object) -> str:
    if isinstance(entry, Mapping):
        fields = cast("Mapping[str, object]", entry)
        entry = next((fields[key] for key in ("id", "name", "model") if fields.get(key)), "")
    fits = isinstance(entry, str) and len(entry) <= MAX_NAME and entry.isprintable()
    return entry.strip() if isinstance(entry, str) and fits else ""


def _error(fault: ProviderFault, provider: LlmProvider) -> ProviderError:
    safe = fault.without(provider.secrets())
    kind = ProviderUnavailable if fault.kind == "transient" else ProviderRefused
    return kind(
        f"{shown_url(provider.base_url)} gives no list of models: {safe.message}",
        status=safe.status,
        provider_message=safe.provider_message,
        retry_after_s=safe.retry_after_s,
    )
