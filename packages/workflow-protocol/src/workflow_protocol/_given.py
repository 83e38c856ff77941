"""What callers give, checked where it comes in: its type, and that text of it can be kept.

Text comes from Python, where a string may hold what UTF-8 has no bytes for: half of a surrogate
pair, as an odd file name becomes one. Neither a record nor a request can carry it. Names and what
an author writes are refused; what a run says (questions, answers, errors) is kept with an escape.
"""

from __future__ import annotations


def expect_type(value: object, type_: type | tuple[type, ...], what: str, *, use: str) -> None:
    """Refuse a value of another type in one sentence, as a checker of types does beforehand.

    Args:
        value: what was given.
        type_: what it has to be.
        what: names it, such as `the config`.
        use: what to write instead, such as `write ReactAdapterConfig(llm="default")`.

    Raises:
        TypeError: it is of another type.
    """
    if not isinstance(value, type_):
        raise TypeError(f"{what} is of type {type(value).__name__}; {use}")


def text_fault(text: str) -> str:
    """What keeps a text from being stored, as the end of a sentence; empty if nothing."""
    if text.isascii():
        return ""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return (
            f"is not valid UTF-8: at character {error.start} it has half of a pair "
            "or a byte of a name that is none"
        )
    return ""


def escaped_text(text: str) -> str:
    r"""The text as it can be stored: what UTF-8 can't hold stands as an escape, as `\udc80`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
