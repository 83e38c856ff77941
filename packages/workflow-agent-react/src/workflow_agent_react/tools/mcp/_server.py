"""Where an MCP server is and how long it may take; what of that is secret is never shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

import msgspec

from workflow_agent_react._errors import McpError
from workflow_reactor import HIDDEN, Secret, shown_url, without_keys

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(
    r"(?i)key|token|secret|passw|pwd|auth|credential|cookie|session|bearer|signature"
)
_SECRET_OPTION = re.compile(r"(?i)-{0,2}[\w-]*(?:key|token|secret|passw|pwd|auth|credential)[\w-]*")
_LEAST_CHARS = 6
"""A shorter value isn't looked for in texts: it would be found in ordinary words."""


class McpServer(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Where an MCP server is: a command to start, or the URL of a running one.

    `${NAME}` in `env`, `headers` and `url` stands for an environment variable; it is read when the
    server is connected. No `repr`, message or log shows these values, nor a URL's password and
    query, nor a value after an option such as `--api-key`.

    Raises:
        McpError: not exactly one of `command` and `url` is given, or one of them can't be right.
    """

    command: Sequence[str | Secret] = ()
    """Program and arguments, started for as long as the server is open; it speaks on its standard
    input and output. Linux and macOS."""
    env: Mapping[str, str | Secret] = msgspec.field(default_factory=dict[str, str | Secret])
    """Variables for the command, beside HOME, LANG, LOGNAME, PATH, SHELL, TERM, TMPDIR and USER."""
    folder: Path | None = None
    """Where the command is started; the engine's own folder if not given."""
    url: str = ""
    """A streamable HTTP endpoint, such as `http://localhost:8000/mcp`."""
    headers: Mapping[str, str | Secret] = msgspec.field(default_factory=dict[str, str | Secret])
    """More headers for each request to `url`, such as `{"Authorization": "Bearer ${API_KEY}"}`."""
    name: str = ""
    """What messages call it; where a name of its tools is taken, this stands before it."""
    trust_hints: bool = False
    """Believe the server which of its tools only read or may be repeated. By default none may."""
    timeout_s: float = 120.0
    """Seconds that one call may take."""
    start_timeout_s: float = 60.0
    """Seconds from its start, or the first request, until it is ready for calls."""
    list_timeout_s: float = 30.0
    """Seconds that the whole list of its tools may take."""
    close_timeout_s: float = 2.0
    """Seconds that it has to end by itself when its input closes; it is killed then."""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise McpError(self.place, "give either `command` or `url`")
        if isinstance(self.command, str):
            raise McpError(HIDDEN, 'write `command` as a list of words: ["npx", "-y", "server"]')
        if self.url and (fault := _url_fault(self.url)):
            raise McpError(self.place, fault)
        if (self.env or self.folder) and self.url:
            raise McpError(self.place, "`env` and `folder` are for a command")
        if self.headers and self.command:
            raise McpError(self.place, "`headers` are for a URL")
        for field in ("timeout_s", "start_timeout_s", "list_timeout_s", "close_timeout_s"):
            if not getattr(self, field) > 0:
                raise McpError(self.place, f"`{field}` must be more than 0")

    @property
    def place(self) -> str:
        """Its name, else the URL or the command in one line, without what is secret."""
        return self.name or (shown_url(self.url) if self.url else " ".join(_shown(self.command)))

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in self.__rich_repr__()]
        return f"McpServer({', '.join(given)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The fields that were given, without what is secret; `rich` prints these."""
        shown: list[tuple[str, Any]] = []
        defaults = {each.name: each.default for each in msgspec.structs.fields(self)}
        for name in self.__struct_fields__:
            value: object = getattr(self, name)
            match name:
                case "command":
                    value = list(_shown(self.command))
                case "env" | "headers":
                    value = dict.fromkeys(getattr(self, name), HIDDEN)
                case "url":
                    value = shown_url(self.url) if self.url else ""
                case _:
                    pass
            if value and value != defaults[name]:
                shown.append((name, value))
        return shown


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to get in, with every reference followed. It holds secrets."""

    command: tuple[str, ...]
    env: dict[str, str]
    url: str
    headers: dict[str, str]
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        return "Access(…)"

    def hide(self, text: str) -> str:
        """A text without the secrets that stand in it, and without what looks like one."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return without_keys(text)


def access_to(server: McpServer) -> Access:
    """Follow the references of a server.

    Raises:
        McpError: a variable isn't set, or a `Secret` can't be found.
    """
    found = _Finder(server)
    command = tuple(found.text(each, "command") for each in server.command)
    env = {name: found.text(value, f"env.{name}") for name, value in server.env.items()}
    headers = {name: found.text(value, f"headers.{name}") for name, value in server.headers.items()}
    url = found.text(server.url, "url")
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable():
            raise McpError(server.place, f"`headers.{name}` has characters that no header may have")
    secrets = {
        *found.secrets,
        *(value for name, value in env.items() if _SECRET_NAME.search(name)),
        *(word for value in headers.values() for word in (value, value.rpartition(" ")[2])),
        *_secrets_in(url),
        *_secrets_in_command(command),
    }
    longest_first = sorted((each for each in secrets if len(each) >= _LEAST_CHARS), key=len)[::-1]
    return Access(command=command, env=env, url=url, headers=headers, secrets=tuple(longest_first))


class _Finder:
    def __init__(self, server: McpServer) -> None:
        self._server = server
        self.secrets: set[str] = set()

    def text(self, value: str | Secret, place: str) -> str:
        if isinstance(value, Secret):
            try:
                found = value.reveal()
            except Exception as error:
                reason = f"the secret of `{place}` can't be found ({type(error).__name__})"
                raise McpError(self._server.place, reason) from error
            self.secrets.add(found)
            return found
        if place == "command":  # `${NAME}` is the shell's there
            return value
        return _REFERENCE.sub(lambda match: self._variable(match[1], place), value)

    def _variable(self, name: str, place: str) -> str:
        value = os.environ.get(name)
        if value is None:
            reason = f"`{place}` refers to the environment variable {name}, which is not set"
            raise McpError(self._server.place, reason)
        self.secrets.add(value)
        return value


def _secrets_in(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    for each in parts.query.split("&"):
        name, equals, value = each.partition("=")
        yield value if equals else name
        yield unquote_plus(value)
    if parts.password:
        yield parts.password
        yield unquote(parts.password)


def _secrets_in_command(command: Sequence[str]) -> Iterator[str]:
    for word, shown in zip(command, _shown(command), strict=True):
        if word != shown:
            yield from (word, word.partition("=")[2], word.rpartition(" ")[2])
            if "://" in word:
                yield from _secrets_in(word)


def _shown(command: Sequence[str | Secret]) -> Iterator[str]:
    """The words of a command; hidden are a `Secret` and what belongs to an option for one."""
    is_value = False
    for word in command:
        if isinstance(word, Secret):
            yield HIDDEN
            is_value = False
            continue
        option, equals, _ = word.partition("=")
        is_option = _SECRET_OPTION.fullmatch(option) is not None
        if is_value and not word.startswith("--"):
            yield HIDDEN
        elif equals and is_option:
            yield f"{option}={HIDDEN}"
        elif "://" in word:
            yield shown_url(word)
        elif ": " in word and _SECRET_NAME.search(word.partition(": ")[0]):  # a header
            yield f"{word.partition(': ')[0]}: {HIDDEN}"
        else:
            yield without_keys(word)
        is_value = is_option and not equals and word.startswith("-")


def _url_fault(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    if right or _REFERENCE.match(url):
        return None
    return "`url` should be an http(s) URL such as http://localhost:8000/mcp"
