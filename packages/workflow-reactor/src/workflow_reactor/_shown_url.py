"""URLs and texts as people may see them, without keys: for every message that has one."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

HIDDEN = "…"
"""Stands for what people must not see."""

_URL = re.compile(r"\bhttps?://[^\s'\"<>`]+", re.IGNORECASE)
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::\d{0,5})?")
_VALUE = re.compile(r"([^&;=]*=)?[^&;]+")
_LIKE_KEYS = re.compile(
    r"""(?<=Bearer\ )[^\s)\]"',;]+
    |\b(?:sk|pk|rk|gsk|xai|hf|gh[pousr]|github_pat|glpat|xox[abpr])[-_][\w-]{8,}
    |\b(?:AIza|AKIA|eyJ)[\w.-]{12,}""",
    re.VERBOSE,
)


def shown_url(url: str) -> str:
    """A URL for people: a user, a password, values of the query and a fragment are `…`.

    What is no http(s) URL is `…` as a whole, for it may be a key that was put in the wrong place.
    """
    scheme, found, rest = url.strip().partition("://")
    if not found or scheme.lower() not in {"http", "https"}:
        return HIDDEN
    place, has_fragment, _ = rest.partition("#")
    place, has_query, query = place.partition("?")
    host, slash, path = place.partition("/")
    user, has_user, host = host.rpartition("@")
    if "@" in rest.replace("@", "", bool(has_user)):  # who knows where a password ends that has one
        return f"{scheme}://{HIDDEN}"
    host = host if _HOST.fullmatch(host) else HIDDEN
    user = f"{HIDDEN}@" if user else ""
    shown = f"{scheme}://{user}{host}{slash}{_LIKE_KEYS.sub(HIDDEN, path)}"
    if has_query:
        shown += "?" + _VALUE.sub(lambda pair: (pair[1] or "") + HIDDEN, query)
    return f"{shown}#{HIDDEN}" if has_fragment else shown


def without_keys(text: str) -> str:
    """A text whose URLs are as `shown_url` has them, and without what looks like a key."""
    text = _URL.sub(lambda found: shown_url(found[0]), text) if "://" in text else text
    return _LIKE_KEYS.sub("[key]", text)


def base_url_fault(base_url: str) -> str | None:
    """Why requests can't be sent to this base URL, in words that don't repeat it."""
    try:
        parts = urlsplit(base_url)
        port_is_right = parts.port != 0
    except ValueError:
        port_is_right, parts = False, urlsplit("")
    if "@" in parts.netloc:
        return "has a user or password in it; put the key into api_key instead"
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_right:
        return "should be an http(s) URL such as https://host/v1"
    if any(not sign.isprintable() or sign == " " for sign in base_url):
        return "has a space or a sign that can't be seen in it; write it anew"
    if "#" in base_url:
        return "has a fragment (#…), which no request carries; leave it out"
    if parts.path.rstrip("/").endswith("/chat/completions"):
        return "should end before /chat/completions"
    return None
