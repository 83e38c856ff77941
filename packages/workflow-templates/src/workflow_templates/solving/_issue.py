"""The issue: a text, a file, or what a URL gives as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import msgspec

from workflow_templates._errors import IssueNotRead

MAX_CHARS = 60_000
_TIMEOUT_S = 30.0


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be solved."""

    text: str
    """Title and description, as the developer reads them."""
    source: str = ""
    """The file or URL that it comes from."""
    reproduce: str = ""
    """The reporter's command, for the shell: it fails as long as the issue is there."""


async def read_issue(prompt: str, folder: Path) -> Issue:
    """Read an issue: fetched by `https://…` or `http://…`, a file of that name, or the text itself.

    JSON has `title` and `body` (or `description`), as GitHub and GitLab give it, and perhaps
    `reproduce`.

    Args:
        prompt: what the thread was begun with.
        folder: files are looked for in it.

    Raises:
        IssueNotRead: it is not there, or has no text.
    """
    words = prompt.strip()
    if words.startswith(("https://", "http://")) and len(words.split()) == 1:
        return _from_text(await _fetch(words), words)
    if "\n" not in words and 0 < len(words) < 500:
        path = folder / words
        try:
            if path.is_file():
                return _from_text(path.read_text(encoding="utf-8", errors="replace"), words)
        except OSError as error:
            raise IssueNotRead(f"{words}: {error.strerror}") from error
    return _from_text(prompt, "")


async def _fetch(url: str) -> str:
    import httpx

    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=True) as client:
            reply = await client.get(url, headers={"Accept": "application/json"})
    except httpx.HTTPError as error:
        raise IssueNotRead(f"{url}: {error or type(error).__name__}") from error
    if reply.status_code != 200:
        raise IssueNotRead(f"{url} answers with {reply.status_code}; give the text or a file")
    return reply.text


def _from_text(text: str, source: str) -> Issue:
    read = _fields(text)
    fields = read or {}
    body = fields.get("body") or fields.get("description") or ""
    parts = [text] if read is None else [fields.get("title", ""), body]
    words = "\n\n".join(part.strip() for part in parts if part.strip())[:MAX_CHARS]
    if not words:
        where = f"{source} has" if source else "the task has"
        raise IssueNotRead(f"{where} no text; JSON needs `title` and `body`")
    return Issue(text=words, source=source, reproduce=fields.get("reproduce", ""))


def _fields(text: str) -> dict[str, str] | None:
    """The text fields of a JSON object; `None` where it is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        read = cast("object", json.loads(text))
    except ValueError:
        return None
    if not isinstance(read, dict):
        return None
    given = cast("dict[str, object]", read)
    return {key: value for key, value in given.items() if isinstance(value, str)}
