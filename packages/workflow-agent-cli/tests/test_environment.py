import msgspec
import pytest

from workflow_agent_cli import PROFILES
from workflow_agent_cli._environment import BASE_ENVIRONMENT, Environment
from workflow_reactor import Secret
from workflow_util_agent.process import ShortenedOutput


class Note(msgspec.Struct):
    text: str
    count: int = 1


def test_an_agent_gets_the_keys_of_its_own_provider_and_nobody_elses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "GH_TOKEN", "X"):
        monkeypatch.setenv(name, f"value of {name}")
    foreign = {
        agent: {v for v in Environment(profile.env, {}).values.values() if v.startswith("value of")}
        for agent, profile in PROFILES.items()
    }

    assert foreign == {
        "claude": {"value of ANTHROPIC_API_KEY"},
        "codex": {"value of OPENAI_API_KEY"},
        "hermes": set(),
        "opencode": set(),
        "qwen": set(),
    }


def test_nothing_else_is_inherited_and_the_locale_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("MINE", "m")

    env = Environment(["MINE"], {"GIVEN": "g", "TOKEN": Secret("s3cret")}).values

    assert env.keys() - set(BASE_ENVIRONMENT) == {
        *("LANG", "LC_ALL", "TERM", "NO_COLOR", "PAGER", "GIT_PAGER"),
        *("MINE", "GIVEN", "TOKEN"),
    }
    assert (env["LANG"], env["TOKEN"]) == ("C.UTF-8", "s3cret")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"SOME_API_KEY": "sk-1234"}, "sk-1234"),
        ({"PLAIN": Secret("hidden")}, "hidden"),
        ({"CUSTOM_HEADERS": "X-Key: abcd-efgh"}, "abcd-efgh"),
        ({"HTTPS_PROXY": "http://user:pass@proxy:8080"}, "user:pass"),
    ],
)
def test_keys_are_taken_out_of_texts(given: dict[str, str | Secret], shown: str) -> None:
    environment = Environment([], given)

    assert environment.redact(f"a <{shown}> b") == "a <[key]> b"
    assert environment.redact_fields(Note(text=f"it is {shown}")) == Note(text="it is [key]")


@pytest.mark.parametrize("kept", range(1, 40))
def test_half_a_key_does_not_survive_where_a_text_was_cut(kept: int) -> None:
    key = "abcdefghijklmnopqrstuvwxyz0123456789"
    environment = Environment([], {"SOME_API_KEY": key})
    output = ShortenedOutput(200)
    output.add(b"x" * (100 - kept) + key.encode() + b"." * 500 + key.encode() + b"y" * (100 - kept))

    shown = environment.redact(output.text())
    head, tail = shown.split("\n[… ")[0], shown.split("…]\n")[1].rstrip("\n")
    assert len(head) >= len("x" * (100 - kept))
    for length in range(8, len(key)):
        assert key[:length] not in head
        assert key[-length:] not in tail
    assert environment.redact(f"{key[:20]} a {key[:20]}") == f"{key[:20]} a [key]"


def test_what_is_no_key_stays() -> None:
    environment = Environment([], {"BASE_URL": "http://127.0.0.1:80/v1", "A_KEY": "k"})

    assert environment.redact("k at http://127.0.0.1:80/v1") == "k at http://127.0.0.1:80/v1"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("HTTP 401: bad (Bearer abc.def)", "HTTP 401: bad (Bearer [key])"),
        ("Incorrect API key provided: sk-proj-12345678", "Incorrect API key provided: [key]"),
        ("ghp_0123456789abcdef", "[key]"),
        ("the risk-management of desk-lamps", "the risk-management of desk-lamps"),
    ],
)
def test_what_looks_like_a_key_is_taken_out_of_errors_alone(said: str, kept: str) -> None:
    environment = Environment([], {})

    assert environment.redact(said, guess_keys=True) == kept
    assert environment.redact(said) == said
