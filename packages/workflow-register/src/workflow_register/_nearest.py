"""What somebody who misspelt a word probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Return up to two of the known words that this one may have been meant to be."""
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=2, cutoff=0.6)
    return [by_lower[each] for each in found]


def suggest(word: str, known: Iterable[str]) -> str:
    """Say what was probably meant, or else what there is."""
    known = sorted(known)
    if guesses := nearest(word, known):
        return f"did you mean {' or '.join(map(repr, guesses))}?"
    return f"choose one of {', '.join(known)}" if known else "there is none yet"
