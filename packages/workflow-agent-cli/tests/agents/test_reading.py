import msgspec
import pytest

from workflow_agent_cli.agents._reading import decode, micros


class Line(msgspec.Struct):
    text: str


DECODER = msgspec.json.Decoder(Line)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'{"text":"caf\xc3\xa9"}', "caf\u00e9"),
        (b'{"text":"\\ud83d\\ude00"}', "\U0001f600"),
        (b'{"text":"half \\ud83d"}', "half ?"),
        (b'{"text":"\xff"}', "\ufffd"),
    ],
)
def test_broken_characters_are_replaced(line: bytes, text: str) -> None:
    assert decode(DECODER, line) == Line(text)


@pytest.mark.parametrize(
    "line", [b"", b"{", b'{"text":3}', b"[]", b'{"text":' * 100_000, b'{"text":"\\ud83d","text":3}']
)
def test_what_is_something_else_is_none(line: bytes) -> None:
    assert decode(DECODER, line) is None


@pytest.mark.parametrize(
    ("cost", "millionths"),
    [(None, None), (0.0, 0), (0.0069, 6900), (1e-7, 1), (-1.0, None), (1e300, None)],
)
def test_costs_are_rounded_up_and_nonsense_is_unknown(
    cost: float | None, millionths: int | None
) -> None:
    assert micros(cost) == millionths
