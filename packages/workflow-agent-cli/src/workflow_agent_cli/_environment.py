"""The environment of an agent, and what of it must not come to light."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from workflow_reactor import Secret, without_keys

T = TypeVar("T")

BASE_ENVIRONMENT = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "TMPDIR"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)
"""What every agent gets, where it is set: agents keep their logins in the home folder."""
_FIXED = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|HEADERS|AUTH", re.IGNORECASE)
_CREDENTIALS = re.compile(r"://([^/@\s]+)@")
_CUT_MARK = re.compile(r"(\n\[… \d+ bytes left out here …\]\n)")  # of `ShortenedOutput`
_MIN_SECRET_CHARS = 4  # what is shorter occurs in any text
_MAX_HARMLESS_CHARS = 7  # of a key that was cut in two: nobody can use so little of it


class Environment:
    """The whole environment of an agent, made when it is run.

    Args:
        names: variables to take over from this process, beside `BASE_ENVIRONMENT`.
        given: more variables, which go before.
    """

    def __init__(self, names: Sequence[str], given: Mapping[str, str | Secret]) -> None:
        own = {name: os.environ[name] for name in (*BASE_ENVIRONMENT, *names) if name in os.environ}
        own.setdefault("PATH", os.defpath)
        added = {k: v.reveal() if isinstance(v, Secret) else v for k, v in given.items()}
        self.values = {**own, **_FIXED, **added}
        secret_names = {k for k, v in given.items() if isinstance(v, Secret)}
        self._secrets = sorted(set(self._find_secrets(secret_names)), key=len, reverse=True)

    @property
    def unusable_names(self) -> list[str]:
        """Names of the variables that no process can be given."""
        return [
            name
            for name, value in self.values.items()
            if not name or "=" in name or "\0" in name + value
        ]

    def _find_secrets(self, secret_names: set[str]) -> Iterable[str]:
        for name, value in self.values.items():
            if name in secret_names or _SECRET_NAME.search(name):
                yield from (
                    each for each in (value, *value.split()) if len(each) >= _MIN_SECRET_CHARS
                )
            else:
                yield from (
                    each for each in _CREDENTIALS.findall(value) if len(each) >= _MIN_SECRET_CHARS
                )

    def redact(self, text: str, *, guess_keys: bool = False) -> str:
        """The text without keys: agents quote providers, which quote keys.

        Args:
            text: any text.
            guess_keys: also take out what only looks like a key: an agent may have keys in files
                of its own.
        """
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        text = "".join(map(self._without_cut_keys, _CUT_MARK.split(text)))
        return without_keys(text) if guess_keys else text

    def _without_cut_keys(self, text: str) -> str:
        """The text without what is left of a key where the text was cut: at its ends."""
        for secret in self._secrets:
            for size in range(len(secret) - 1, _MAX_HARMLESS_CHARS, -1):
                if text.endswith(secret[:size]):
                    text = f"{text[:-size]}[key]"
                if text.startswith(secret[-size:]):
                    text = f"[key]{text[size:]}"
        return text

    def redact_fields(self, value: T, *, guess_keys: bool = False) -> T:
        """A Struct whose texts are without keys; see `redact`."""
        if not isinstance(value, msgspec.Struct):
            return value
        texts = {
            name: self.redact(text, guess_keys=guess_keys)
            for name in value.__struct_fields__
            if isinstance(text := getattr(value, name), str)
        }
        return msgspec.structs.replace(value, **texts)
