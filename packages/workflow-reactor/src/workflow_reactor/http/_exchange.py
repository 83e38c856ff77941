"""One HTTP exchange: a body out, and the reply's bytes or a sorted fault back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import httpx
import msgspec

from workflow_reactor._errors import ProviderConfigError
from workflow_reactor._provider import LlmProvider
from workflow_reactor._shown_url import shown_url
from workflow_reactor.http._decompress import (
    ACCEPT_ENCODING,
    BadEncoding,
    Decompressor,
    RefusedEncoding,
    TooLarge,
)
from workflow_reactor.http._faults import ProviderFault, fault_of_exception

CONNECT_TIMEOUT_S = 15.0
MAX_ERROR_BYTES = 1 << 16
"""So much of an error's body is read; it is told by its status in any case."""
_CLOSE_GRACE_S = 1.0

Send = Callable[[httpx.Request], Awaitable[httpx.Response]]


class HttpReply(msgspec.Struct, frozen=True):
    """A whole reply, whatever its status."""

    status: int
    headers: httpx.Headers
    body: bytes


class Exchange:
    """Posts bodies to a provider's endpoint, or gets what is there.

    Args:
        provider: the endpoint, its key and the limits of time and size.
        send: sends a request and returns as soon as the reply's headers are there.
        method: `GET` sends no body.
        path: what is asked for below the base URL.

    Raises:
        ProviderConfigError: the base URL can't be called, or the key can't be sent.
    """

    def __init__(
        self,
        provider: LlmProvider,
        send: Send,
        *,
        method: str = "POST",
        path: str = "chat/completions",
    ) -> None:
        try:
            self._url = httpx.URL(_url(provider.base_url, path))
        except httpx.InvalidURL:  # whose words quote parts of it
            shown = shown_url(provider.base_url)
            raise ProviderConfigError(f"base_url {shown} is not valid") from None
        self._send = send
        self._timeout_s = provider.timeout_s
        self._max_bytes = provider.max_reply_bytes
        # With the host, as httpx makes it. Made anew they would take a fiftieth of each exchange.
        self._method = method
        self._headers = httpx.Request(method, self._url, headers=_headers(provider)).headers
        self._extensions = {"timeout": _timeouts(provider.timeout_s)}
        self._kept_alive = False

    async def post(self, body: bytes) -> HttpReply | ProviderFault:
        """Send a body and receive what comes back. Only cancellation and bugs are raised.

        A connection that was kept alive may have been closed by the server just now. That is no
        fault of anyone: the request is sent again at once, on a new connection.
        """
        kept_alive, self._kept_alive = self._kept_alive, False
        reply = await self._once(body, may_be_stale=kept_alive)
        if reply is None:
            reply = await self._once(body, may_be_stale=False)
        assert reply is not None  # only a stale connection gives None
        self._kept_alive = isinstance(reply, HttpReply)
        return reply

    async def _once(self, body: bytes, *, may_be_stale: bool) -> HttpReply | ProviderFault | None:
        request = httpx.Request(
            self._method,
            self._url,
            headers=self._headers,
            stream=httpx.ByteStream(body),
            extensions=self._extensions,
        )
        if body:
            request.headers["content-length"] = str(len(body))
        started = False
        received = bytearray()
        try:
            with anyio.fail_after(self._timeout_s):
                response = await self._send(request)
                started = True
                async with _closing(response):
                    if not response.is_success:
                        await _receive_some(response, received)
                    else:
                        await _receive(response, received, self._max_bytes)
        except TooLarge:
            return self._too_large()
        except BadEncoding as error:
            kind = "permanent" if isinstance(error, RefusedEncoding) else "transient"
            return ProviderFault(kind=kind, message=f"the reply can't be read: {error}")
        except TimeoutError:
            return self._too_slow(started=started, size=len(received))
        except (httpx.HTTPError, OSError, UnicodeError) as error:
            broken = isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError)
            if may_be_stale and not started and broken:
                return None
            return fault_of_exception(error)
        return HttpReply(response.status_code, response.headers, bytes(received))

    def _too_slow(self, *, started: bool, size: int) -> ProviderFault:
        seconds = f"{self._timeout_s:g} s"
        if not started:
            return ProviderFault(kind="transient", message=f"no reply within {seconds}")
        message = f"the reply was not complete within {seconds}; it stopped after {size} bytes"
        return ProviderFault(kind="transient", message=message)

    def _too_large(self) -> ProviderFault:
        message = f"the reply is larger than max_reply_bytes, {self._max_bytes} bytes"
        return ProviderFault(kind="permanent", message=message)


async def _receive(response: httpx.Response, received: bytearray, max_bytes: int) -> None:
    """Read a body and take its compression off.

    Raises:
        TooLarge: it has more than `max_bytes`, before or after that.
        BadEncoding: it isn't compressed as it says, or in a way that wasn't asked for.
    """
    encoding = response.headers.get("content-encoding")
    if encoding is None:  # the usual case, which costs a tenth of the exchange otherwise
        async for part in _raw(response):
            received += part
            if len(received) > max_bytes:
                raise TooLarge
        return
    decompressor = Decompressor(encoding, max_bytes)
    async for part in _raw(response):
        for piece in decompressor.feed(part):
            received += piece
    decompressor.finish()


async def _receive_some(response: httpx.Response, received: bytearray) -> None:
    """Read the beginning of an error's body, or nothing where it can't be read."""
    try:
        await _receive(response, received, MAX_ERROR_BYTES)
    except (TooLarge, BadEncoding):
        del received[MAX_ERROR_BYTES:]


def _raw(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it comes over the wire. httpx's own iterators decompress, or count and decode."""
    stream = response.stream
    return aiter(stream) if isinstance(stream, httpx.AsyncByteStream) else response.aiter_raw()


class _closing:
    """Gives a response's connection back; when cancelled, within a bound."""

    def __init__(self, response: httpx.Response) -> None:
        self._close = response.aclose

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, kind: object, error: BaseException | None, where: object) -> None:
        if error is None:
            await self._close()
        else:
            with anyio.move_on_after(_CLOSE_GRACE_S, shield=True):
                await self._close()


def _url(base_url: str, path: str) -> str:
    """Where to ask. A query, such as `?api-version=…`, stays behind the path."""
    place, has_query, query = base_url.partition("?")
    return f"{place.rstrip('/')}/{path}{has_query}{query}"


def _headers(provider: LlmProvider) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": ACCEPT_ENCODING,
        "user-agent": "united-workforce",
    }
    if key := provider.revealed_key():
        headers["authorization"] = f"Bearer {key}"
    given = provider.revealed_headers()
    names = {name.lower() for name in given}
    return {name: value for name, value in headers.items() if name not in names} | given


def _timeouts(total_s: float) -> dict[str, float | None]:
    """Of the phases only connecting has a limit of its own: a model may think until the end.

    The others would only repeat the limit of the whole exchange, at the cost of a timer each.
    """
    return {
        "connect": min(CONNECT_TIMEOUT_S, total_s),
        "read": None,
        "write": None,
        "pool": None,
    }
