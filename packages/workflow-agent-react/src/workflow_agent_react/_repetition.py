"""Notices a model that goes in circles: the same calls with the same results."""

from __future__ import annotations

from typing import Literal

REPEAT_LIMIT = 3
"""Seeing the same thing this often is told to the model; once more ends the role."""


class Repetition:
    """Counts what was seen. A new effect on the world makes old results worth asking for again."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], int] = {}
        self._told = False

    def saw(
        self, name: str, arguments: str, result: str, *, changes_things: bool
    ) -> Literal["fine", "tell", "stop"]:
        """Count one call with its result, or (without a name) one reply without a call.

        Args:
            name: the tool.
            arguments: in canonical form, so that spacing and key order don't hide a repetition.
            result: what came of it.
            changes_things: the call is not a mere read.
        """
        key = (name, arguments, result)
        count = self._seen.get(key, 0) + 1
        if count == 1 and changes_things:
            self._seen.clear()
        self._seen[key] = count
        if count < REPEAT_LIMIT:
            return "fine"
        if not self._told:
            self._told = True
            return "tell"
        return "stop" if count > REPEAT_LIMIT else "fine"
