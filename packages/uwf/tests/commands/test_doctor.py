"""`uwf doctor`: what a person sees of an endpoint's abilities, and what is kept of them."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from workflow_local_model import CATALOGUE, DEFAULT_MODEL, is_present
from workflow_reactor.testing import Reply, Request, Wire, function, http, loopback_server, say
from workflow_register import ProfileOverrides, load_config

from ..cli import Cli


def configure(home: Path, base_url: str, more: str = "") -> Path:
    home.mkdir(exist_ok=True)
    path = home / "workflow.yaml"
    path.write_text(
        "# mine\n"
        "providers:\n"
        "  spare:\n"
        "    base_url: http://spare.test/v1\n"
        "  box:\n"
        f"    base_url: {base_url}\n"
        f"{more}"
        "models:\n"
        "  default: box/small\n"
        "  review: box/large\n",
        encoding="utf-8",
    )
    return path


def lax(request: Request) -> Any:
    """An endpoint with tools, without schemas, that refuses stop sequences."""
    if "stop" in request:
        return Wire(data=http(422, b'{"detail": [{"loc": ["body", "stop"], "msg": "extra"}]}'))
    if "response_format" in request or "tools" not in request:
        return say(f"I am {request['model']}.", usage=(9, 60))
    if request["messages"][-1]["role"] == "tool" or request.get("tool_choice") == "none":
        return say("Sunny.")
    return say(None, function("weather", city="Paris"))


def script(reply: Any) -> list[Reply | Wire]:
    return [reply] * 40


async def test_each_question_is_a_line_and_the_profile_is_shown(uwf: Cli) -> None:
    async with loopback_server(script(lax)) as server:
        path = configure(uwf.home, f"http://127.0.0.1:{server.port}/v1")
        before = await anyio.Path(path).read_text("utf-8")
        done = await uwf("doctor")

    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("yes\tchat\tit replies\t")
    assert lines[0].endswith("'I am small.'")
    (stop,) = [line for line in lines if "\tstop\t" in line and not line.startswith(" ")]
    assert stop.startswith("no\tstop\ta stop sequence ends the reply\t")
    assert "refused: the provider answered 422" in stop
    assert done.out.partition("\nprofile:\n")[2] == (
        "  dialect: native\n"
        "  response_format: none    # now json_schema\n"
        "  strict_schemas: false\n"
        "  refs: true\n"
        "  forced_tool_choice: required    # now named\n"
        "  stop: false    # now true\n"
        "  echo_reasoning: true\n"
    )
    assert await anyio.Path(path).read_text("utf-8") == before


@pytest.mark.parametrize("target", ["box", "box/small"])
async def test_the_profile_is_written_where_it_is_asked_for_and_the_rest_stays(
    uwf: Cli, target: str
) -> None:
    async with loopback_server(script(lax)) as server:
        more = "    profile:\n      max_tokens: 100     # enough\n      stop: true\n"
        path = configure(uwf.home, f"http://127.0.0.1:{server.port}/v1", more)
        done = await uwf("doctor", target, "--write")

    assert done.code == 0, done.err
    assert f"{path}: providers.box.profile is written" in done.err
    text = await anyio.Path(path).read_text("utf-8")
    assert text.startswith("# mine\n")
    assert "max_tokens: 100     # enough\n" in text
    assert load_config(uwf.home).providers["box"].profile == ProfileOverrides(
        dialect="native",
        response_format="none",
        strict_schemas=False,
        refs=True,
        forced_tool_choice="required",
        stop=False,
        echo_reasoning=True,
        max_tokens=100,
    )
    assert {json.loads(body)["model"] for body in server.bodies} == {"small"}
    assert all(json.loads(body).get("max_tokens", 0) <= 100 for body in server.bodies)


async def test_json_has_a_line_for_each_question_and_one_for_the_profile(uwf: Cli) -> None:
    async with loopback_server(script(lax)) as server:
        base_url = f"http://127.0.0.1:{server.port}/v1"
        configure(uwf.home, base_url)
        done = await uwf("doctor", "review", "--json")

    assert done.code == 0, done.err
    *findings, last = done.lines
    assert len(findings) == 30
    assert findings[0].pop("elapsed_ms") >= 0
    assert findings[0] == {
        "probe": "chat",
        "asks": "it replies",
        "answer": "yes",
        "words": "'I am large.'",
    }
    assert last.pop("profile")["response_format"] == "none"
    assert last == {"model": "large", "base_url": base_url}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Wire(data=http(401, b'{"error": "no such key"}')), "401: no such key"),
        (Wire(data=http(200, b"<html>Welcome</html>")), "a web page, not JSON"),
        (Wire(then="close"), "the server broke off"),
    ],
    ids=["key", "page", "closed"],
)
async def test_a_broken_endpoint_is_told_and_fails(uwf: Cli, reply: Wire, words: str) -> None:
    async with loopback_server(script(reply)) as server:
        path = configure(uwf.home, f"http://127.0.0.1:{server.port}/v1")
        before = await anyio.Path(path).read_text("utf-8")
        done = await uwf("doctor", "--write", "--timeout", "30")

    assert done.code == 1
    (line,) = done.out.splitlines()
    assert words in line
    assert "does not reply; the reason is above" in done.err
    assert await anyio.Path(path).read_text("utf-8") == before


async def test_what_can_t_be_asked_says_what_to_do(uwf: Cli) -> None:
    configure(uwf.home, "http://127.0.0.1:9/v1", "    api_key: ${DOCTOR_KEY}\n")

    unused = await uwf("doctor", "spare")
    assert unused.code == 2
    assert "no scene uses the provider 'spare'" in unused.err
    keyless = await uwf("doctor")
    assert keyless.code == 1
    assert "DOCTOR_KEY is not set" in keyless.err
    empty = Cli(uwf.home / "empty", uwf.folder)
    nothing = await empty("doctor")
    assert nothing.code == 1
    assert "run `uwf setup`" in nothing.err
    unwritable = await empty(
        "doctor",
        "--write",
        OPENAI_API_KEY="sk-x",
        OPENAI_BASE_URL="http://127.0.0.1:9/v1",
        OPENAI_MODEL="m",
    )
    assert unwritable.code == 2
    assert "comes from environment variables" in unwritable.err
    misspelt = await uwf("doctor", "bxo")
    assert misspelt.code == 2
    assert "no scene and no provider is called 'bxo'; did you mean 'box'?" in misspelt.err


@pytest.mark.model
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not is_present(CATALOGUE[DEFAULT_MODEL]),
    reason=f"the weights are absent; `uv run uwf model pull {DEFAULT_MODEL}` enables it",
)
async def test_the_embedded_model_s_server_is_examined(uwf: Cli) -> None:
    assert (await uwf.process("setup", "--local")).code == 0
    done = await uwf.process("doctor", "--write", "--json")

    assert done.code == 0, done.err
    *findings, last = done.lines
    answers = {each["probe"]: each["answer"] for each in findings}
    always = ("chat", "usage", "max_tokens", "stop", "json_schema", "json_schema_union")
    assert {name: answers[name] for name in always} == dict.fromkeys(always, "yes")
    assert answers["tool_named"] != "yes"  # the engine takes it for `auto`
    assert answers["tool_strict_checked"] == "no"
    written = load_config(uwf.home).providers["local"].profile
    assert (written.response_format, written.union_at_root) == ("json_schema", True)
    for name, value in last["profile"].items():
        assert getattr(written, name) == value
