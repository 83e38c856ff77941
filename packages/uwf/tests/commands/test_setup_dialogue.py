"""`uwf setup` on a terminal: what is asked, and that nothing is written too early."""

from pathlib import Path

import pytest

from workflow_reactor.testing import Wire, http, loopback_server, say
from workflow_register import PRESETS

from ..cli import Cli

KEY = "sk-typed-at-the-prompt"
MODEL = "Model (number, name or a part of it): "
PLACE = "Number or name: "
NEXT = "q: quit: "


def written(uwf: Cli) -> str:
    path = uwf.home / "workflow.yaml"
    return path.read_text(encoding="utf-8") if path.exists() else ""


async def test_a_person_is_led_from_a_place_to_a_model_that_replies(uwf: Cli) -> None:
    async with loopback_server([say("ok")]) as server:
        server.models = ["small", "large"]
        url = f"http://127.0.0.1:{server.port}/v1"
        drawn = await uwf.converse(
            "setup",
            turns=[
                (PLACE, b"vllm\n"),
                ("Base URL (Enter: http://localhost:8000/v1): ", f"{url}\n".encode()),
                (MODEL, b"2\n"),
            ],
        )
    assert " 1  openai     OpenAI\n" in drawn
    assert "   1  large\n   2  small\n" in drawn
    assert "ok: it replies" in drawn
    assert "models.default = vllm/small" in drawn
    assert written(uwf) == (
        f"providers:\n  vllm:\n    kind: openai\n    base_url: {url}\n"
        "models:\n  default: vllm/small\n"
    )


async def test_a_typed_key_is_used_but_neither_shown_nor_stored(uwf: Cli) -> None:
    async with loopback_server([say("ok")]) as server:
        server.models = ["m"]
        url = f"http://127.0.0.1:{server.port}/v1"
        drawn = await uwf.converse(
            "setup", "--base-url", url, "--provider", "mine", "--api-key-env", "MINE_KEY",
            turns=[("Key (Enter goes on without): ", f"{KEY}\n".encode()), (MODEL, b"m\n")],
        )  # fmt: skip
    assert server.authorizations == [f"Bearer {KEY}"] * 2
    assert "The environment variable MINE_KEY is not set." in drawn
    assert "The key is not stored. Set it where uwf runs: export MINE_KEY=…" in drawn
    assert KEY not in drawn + written(uwf)
    assert "api_key: ${MINE_KEY}" in written(uwf)


@pytest.mark.slow
async def test_a_key_of_the_environment_is_not_asked_for(uwf: Cli) -> None:
    async with loopback_server([say("ok")]) as server:
        server.models = ["m"]
        url = f"http://127.0.0.1:{server.port}/v1"
        drawn = await uwf.converse(
            "setup", "--base-url", url, "--api-key-env", "MINE_KEY",
            turns=[(MODEL, b"1\n")], MINE_KEY=KEY,
        )  # fmt: skip
    assert server.authorizations == [f"Bearer {KEY}"] * 2
    assert KEY not in drawn + written(uwf)
    assert "export MINE_KEY" not in drawn


async def test_answers_that_are_none_are_asked_for_again(uwf: Cli) -> None:
    async with loopback_server([say("ok")]) as server:
        server.models = [f"model-{number:02}" for number in range(30)] + ["other-one"]
        url = f"http://127.0.0.1:{server.port}/v1"
        drawn = await uwf.converse(
            "setup",
            turns=[
                (PLACE, b"\n"),
                ("or a name of the list\n" + PLACE, b"99\n"),
                ("or a name of the list\n" + PLACE, b"gorq\n"),
                ("did you mean 'groq'?", b""),
                (PLACE, b"other\n"),
                ("Base URL, such as https://host/v1: ", b"nonsense\n"),
                ("it should be an http(s) URL such as https://host/v1\n", b""),
                ("https://host/v1: ", f"{url}\n".encode()),
                ("(Enter if it needs none): ", b"sk-no-variable\n"),
                ("this is not the name of a variable, such as MY_KEY\n", b""),
                ("(Enter if it needs none): ", b"\n"),
                ("… 11 more; type a part of the name\n" + MODEL, b"nothing-like-it\n"),
                ("Use 'nothing-like-it'? [y/N] ", b"perhaps\n"),
                ("[y/N] ", b"n\n"),
                (MODEL, b"model-1\n"),
                (" 10  model-19\n" + MODEL, b"other\n"),
            ],
        )
    assert "  other-one\nAsking other-one for one word …\nok: it replies" in drawn
    assert f"127-0-0-1-{server.port}/other-one" in written(uwf)


@pytest.mark.slow
async def test_an_endpoint_without_a_list_takes_a_typed_name(uwf: Cli) -> None:
    async with loopback_server([say("ok")]) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        drawn = await uwf.converse(
            "setup", "--base-url", url,
            turns=[("Name of the model: ", b"\n"), ("Name of the model: ", b"my/model\n")],
        )  # fmt: skip
    assert "it gives no list of its models\n" in drawn
    assert "there is nothing here" in drawn
    assert f"default: 127-0-0-1-{server.port}/my/model" in written(uwf)


async def test_a_test_that_fails_offers_another_model_key_or_end(uwf: Cli) -> None:
    refused = Wire(data=http(401, b'{"error": {"message": "who are you?"}}'))
    missing = Wire(data=http(404, b'{"error": {"message": "no model a"}}'))
    async with loopback_server([refused, missing, say("ok")]) as server:
        server.models = ["a", "b"]
        url = f"http://127.0.0.1:{server.port}/v1"
        drawn = await uwf.converse(
            "setup", "--base-url", url, "--api-key-env", "MINE_KEY", MINE_KEY="sk-wrong-one",
            turns=[
                (MODEL, b"a\n"),
                (NEXT, b"x\n"),
                ("type m, k, w or q\n", b""),
                (NEXT, b"k\n"),
                ("Key (Enter goes on without): ", f"{KEY}\n".encode()),
                ("Asking a for one word …", b""),
                (NEXT, b"m\n"),
                (MODEL, b"b\n"),
            ],
        )  # fmt: skip
    assert "it does not know the key: check MINE_KEY\n" in drawn
    assert "who are you?" in drawn
    assert "there is no such model, or the base URL is wrong\n" in drawn
    assert "ok: it replies" in drawn
    assert "sk-wrong-one" not in drawn
    assert server.authorizations[-1] == f"Bearer {KEY}"
    assert "/b\n" in written(uwf)


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "code", "is_written"), [(b"w\n", 0, True), (b"q\n", 1, False)])
async def test_a_model_that_does_not_reply_is_written_only_if_the_person_says_so(
    uwf: Cli, typed: bytes, code: int, is_written: bool
) -> None:
    async with loopback_server([]) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
    drawn = await uwf.converse(
        "setup", "--base-url", url,
        turns=[("Name of the model: ", b"m\n"), (NEXT, typed)], code=code,
    )  # fmt: skip
    assert f"nothing replies at {url}: check the base URL and the network" in drawn
    assert bool(written(uwf)) == is_written


BEFORE = "# mine\nproviders:\n  x:\n    base_url: http://x.test/v1\nmodels:\n  default: x/m\n"
STOPS = [
    pytest.param([(PLACE, b"\x03")], marks=pytest.mark.slow),
    pytest.param([(PLACE, b"\x04")], marks=pytest.mark.slow),
    [(PLACE, b"groq\n"), ("Key (Enter goes on without): ", b"\x03")],
    pytest.param([(PLACE, b"ollama\n"), ("Base URL", b"\x03")], marks=pytest.mark.slow),
]


@pytest.mark.parametrize("turns", STOPS)
async def test_an_end_at_any_question_leaves_the_file_as_it_is(
    uwf: Cli, turns: list[tuple[str, bytes]]
) -> None:
    uwf.home.mkdir(parents=True, exist_ok=True)
    (uwf.home / "workflow.yaml").write_text(BEFORE, encoding="utf-8")
    code = 1 if turns[-1][1] == b"\x04" else 130
    drawn = await uwf.converse("setup", turns=turns, code=code)
    assert written(uwf) == BEFORE
    assert "Traceback" not in drawn


@pytest.mark.slow
async def test_ctrl_c_during_the_test_call_leaves_the_file_as_it_is(uwf: Cli) -> None:
    async with loopback_server([Wire(then="stall")]) as server:
        server.models = ["m"]
        await uwf.converse(
            "setup", "--base-url", f"http://127.0.0.1:{server.port}/v1",
            turns=[(MODEL, b"m\n"), ("Asking m for one word …", b"\x03")], code=130,
        )  # fmt: skip
    assert not written(uwf)


@pytest.mark.slow
async def test_the_embedded_model_is_chosen_from_the_catalogue(uwf: Cli, tmp_path: Path) -> None:
    drawn = await uwf.converse(
        "setup",
        turns=[(PLACE, b"local\n"), ("Number or name (Enter: ", b"smollm2-135m\n")],
        UWF_MODELS=str(tmp_path),
    )
    assert "To download it: uwf model pull smollm2-135m" in drawn
    assert "default: local/smollm2-135m" in written(uwf)


def test_each_preset_is_named_in_the_help() -> None:
    from uwf.arguments._parser import make_parser

    help = " ".join(make_parser().subcommands["setup"].format_help().split())
    for name in PRESETS:
        assert f"{name}," in help or f"{name} " in help
