"""Questions of a thread that a person answers on the terminal."""

from ..cli import Cli
from ..entries import ASKING


async def test_on_a_terminal_the_person_is_asked_at_once(uwf: Cli) -> None:
    entry = uwf.write("asking.py", ASKING)

    replies = [b"what?\n", b"y fine by me\n", b"no\n"]
    drawn = await uwf.on_terminal("run", entry, "x", replies=replies)

    assert "May I build?" in drawn
    assert "build --all" in drawn
    assert "build:True:fine by me push:False:" in drawn


async def test_what_was_typed_before_a_question_was_shown_does_not_answer_it(uwf: Cli) -> None:
    entry = uwf.write("asking.py", ASKING)

    replies = [b"n\nyes\nyes\n", b"n later\n"]
    drawn = await uwf.on_terminal("run", entry, "x", replies=replies, early=b"y\n")

    assert "build:False: push:False:later" in drawn
