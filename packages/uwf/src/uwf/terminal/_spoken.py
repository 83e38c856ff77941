"""What a model says for people, in the beginning of its reply."""

from __future__ import annotations

import re

from uwf.terminal._cells import columns_of, fit

_OWN_FORM = re.compile(r"<(action|final_answer|tool_calls?|function_calls?)\b", re.IGNORECASE)
_TAGS = re.compile(r"</?(thought|think|thinking|reasoning)\s*+>", re.IGNORECASE)
_DATA = re.compile(r"(```|\{|\[|\"|(true|false|null|-?[0-9.]+)\s*$)")


def spoken_words(text: str, width: int) -> str:
    """The words of a reply on one line, cut at a space; empty where it has none.

    A call or a value that stands in the text is not said to anybody: it is shown as what it is.
    """
    words = text
    if (found := _OWN_FORM.search(text)) is not None:
        words = text[: found.start()]
    words = _TAGS.sub(" ", words)
    if _DATA.match(words.strip()):
        return ""
    flat = "".join(each if each.isprintable() else " " for each in words)
    line = " ".join(flat.split())
    if columns_of(line) <= width:
        return line
    cut = fit(line, width).removesuffix("…")
    head, space, _ = cut.rpartition(" ")
    return f"{head if space and columns_of(head) > width // 2 else cut}…"
