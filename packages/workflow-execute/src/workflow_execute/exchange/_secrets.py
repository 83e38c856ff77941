"""Finds the values of keys in objects, however they are written there."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping

from workflow_cas import Stored

MIN_SECRET_CHARS = 8
"""What is shorter, such as the `none` of a local server, occurs in any text."""
_NESTED = 4
"""How deep JSON may stand in JSON, as text: a call's arguments, in a reply, in a report of it."""


class SecretScan:
    """Looks for many values in one go.

    Args:
        secrets: by the name that people know them under.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names = {
            form: name
            for name, value in secrets.items()
            if len(value) >= MIN_SECRET_CHARS
            for form in _forms(value)
        }
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = (
            re.compile(b"|".join(map(re.escape, longest_first))) if self._names else None
        )

    def find(self, stored: Stored) -> str:
        """The name of a key whose value is in the object; empty where there is none."""
        found = self._pattern.search(stored.data) if self._pattern is not None else None
        return "" if found is None else self._names[found.group()]


def _forms(value: str) -> Iterator[bytes]:
    """A value as it stands in text, in JSON (in JSON …), and in base64 wherever it begins there."""
    texts = {value}
    for _ in range(_NESTED):
        texts |= {
            json.dumps(each, ensure_ascii=way)[1:-1] for each in texts for way in (True, False)
        }
    yield from (each.encode("utf-8", "backslashreplace") for each in texts)
    data = value.encode("utf-8", "backslashreplace")
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data)
        # The first and the last digits hold bits of the neighbours, too.
        yield encoded[(0, 2, 3)[before] : len(encoded) - (0, 3, 2)[(before + len(data)) % 3]]
