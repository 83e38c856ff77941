import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_reactor import Profile
from workflow_register import (
    Config,
    ConfigError,
    Limits,
    ModelConfig,
    ModelPrice,
    ProfileOverrides,
    ProviderConfig,
    SupervisorConfig,
    config_path,
    load_config,
    update_config,
)

FULL = """\
# whose models we use
providers:
  openai:
    base_url: https://api.openai.com/v1
    api_key: ${OPENAI_API_KEY}
    timeout_s: 30
    max_attempts: 2
    extra_body: {temperature: 0, stop: [a, b]}
    profile: {dialect: json, response_format: none, max_tokens: 500, echo_reasoning: false}
  local: {kind: local}
models:
  default: openai/gpt-4.1-mini
  extract: local
  review: openai/org/model
limits: {max_steps: 7}
"""

SETUP = {
    "providers": {
        "openai": {"base_url": "https://api.openai.com/v1", "api_key": "${OPENAI_API_KEY}"}
    },
    "models": {"default": "openai/m"},
}


def written(home: Path, text: str | bytes) -> Path:
    path = config_path(home)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def loaded(home: Path) -> Config | ConfigError:
    try:
        return load_config(home)
    except ConfigError as error:
        return error


def faults_of(home: Path, text: str | bytes) -> list[tuple[int | None, str, str]]:
    path = written(home, text)
    with pytest.raises(ConfigError) as caught:
        load_config(home)
    assert {fault.path for fault in caught.value.faults} == {path}
    assert str(caught.value) == "\n".join(map(str, caught.value.faults))
    assert caught.value.__context__ is None
    return [(fault.line, fault.key, fault.message) for fault in caught.value.faults]


def test_a_missing_or_empty_file_is_an_empty_configuration(tmp_path: Path) -> None:
    assert load_config(tmp_path / "none") == Config()
    for text in ("", "# nothing yet\n", "providers:\nmodels:\nlimits:\n", "\ufeffmodels: {}\n"):
        written(tmp_path, text)
        assert load_config(tmp_path) == Config()


def test_a_whole_file_is_read_and_no_key_is_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    written(tmp_path, FULL)
    assert load_config(tmp_path) == Config(
        providers={
            "openai": ProviderConfig(
                base_url="https://api.openai.com/v1",
                api_key="${OPENAI_API_KEY}",
                timeout_s=30,
                max_attempts=2,
                extra_body={"temperature": 0, "stop": ["a", "b"]},
                profile=ProfileOverrides(
                    dialect="json", response_format="none", max_tokens=500, echo_reasoning=False
                ),
            ),
            "local": ProviderConfig(kind="local"),
        },
        models={
            "default": ModelConfig(model="openai/gpt-4.1-mini"),
            "extract": ModelConfig(model="local"),
            "review": ModelConfig(model="openai/org/model"),
        },
        limits=Limits(max_steps=7),
    )


def test_all_faults_are_told_at_once_with_line_key_and_remedy(tmp_path: Path) -> None:
    assert faults_of(
        tmp_path,
        """\
providers:
  openai: {base_ur: https://x/v1}
  other:
    base_url: ftp://x
    timeout_s: "4"
    profile: {dialect: nativ}
    api_key: Bearer ${KEY}
  loc: {kind: local, base_url: http://x/}
  empty:
  list: [1]
  a/b: {kind: local}
models:
  default: opnai/x
  extract: loc
  review: other
limits: {max_steps: 0}
workflows: {}
1: x
""",
    ) == [
        (2, "providers.openai.base_ur", "unknown key; did you mean 'base_url'?"),
        (4, "providers.other.base_url", "should be an http(s) URL such as https://host/v1"),
        (
            5,
            "providers.other.timeout_s",
            "should be a valid number (seconds for one whole exchange)",
        ),
        (
            6,
            "providers.other.profile.dialect",
            "should be 'native', 'json' or 'xml' (how tools are offered: native, json or xml)",
        ),
        (
            7,
            "providers.other.api_key",
            "a reference must be the whole value, such as ${OPENAI_API_KEY}",
        ),
        (
            8,
            "providers.loc.base_url",
            "a provider of kind 'local' finds its endpoint itself; remove base_url, or the kind",
        ),
        (9, "providers.empty.base_url", "it is missing; write `base_url: https://host/v1`"),
        (10, "providers.list", "should be a mapping: indented lines of `key: value`"),
        (
            11,
            "providers.a/b",
            "a provider's name has letters, digits, '.', '_' and '-' only",
        ),
        (13, "models.default", "no provider is called 'opnai'; did you mean 'openai'?"),
        (15, "models.review", "no model is named; write `review: other/MODEL`"),
        (
            16,
            "limits.max_steps",
            "should be greater than or equal to 1 (role turns of one thread)",
        ),
        (
            17,
            "workflows",
            "unknown key; choose one of limits, mcp, models, providers, sandbox, supervisor",
        ),
        (18, "1", "a key should be text; put it in quotes"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "response_format: json",
            "should be 'json_schema', 'json_object' or 'none' "
            "(what the endpoint can be asked to hold its reply to)",
        ),
        (
            "strict_schemas: 1",
            "should be a valid boolean (whether schemas are sent with strict: true)",
        ),
        (
            'refs: "no"',
            "should be a valid boolean (whether a schema may have $ref and $defs)",
        ),
        (
            "union_at_root: none",
            "should be a valid boolean (whether a reply's schema may have anyOf at its root)",
        ),
        (
            "forced_tool_choice: false",
            "should be 'named', 'required' or 'none' "
            "(how a request can make the model call a tool: by its name, or just any)",
        ),
        (
            "parallel_tool_calls: 2",
            "should be a valid boolean (what is sent as parallel_tool_calls; without it, nothing)",
        ),
        ("stop: END", "should be a valid boolean (whether stop sequences end a reply)"),
        ("max_tokens: 0", "should be greater than or equal to 1 (the most tokens of one reply)"),
        ("strict: true", "unknown key; did you mean 'strict_schemas'?"),
    ],
)
def test_a_part_of_a_profile_that_cannot_be_says_what_it_is_for(
    tmp_path: Path, line: str, message: str
) -> None:
    text = f"providers:\n  x:\n    base_url: http://x/v1\n    profile:\n      {line}\n"
    key = f"providers.x.profile.{line.partition(':')[0]}"
    assert faults_of(tmp_path, text) == [(5, key, message)]


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        ("https://ada:pw@x/v1", "has a user or password in it; put the key into api_key instead"),
        ("https://x/v1/chat/completions", "should end before /chat/completions"),
        ("https://x:99999/v1", "should be an http(s) URL such as https://host/v1"),
        ("https:///v1", "should be an http(s) URL such as https://host/v1"),
    ],
)
def test_a_base_url_that_cannot_work_is_refused(
    tmp_path: Path, base_url: str, message: str
) -> None:
    text = f"providers:\n  x:\n    base_url: {base_url}\n"
    assert faults_of(tmp_path, text) == [(3, "providers.x.base_url", message)]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            'providers:\n  x: {base_url: "http://x", api_key: ${KEY}}\n',
            2,
            'within { } a reference needs quotes: "${NAME}"',
        ),
        ("models:\n  a: b/c\n  a: sk-secret\n", 3, "this key appears twice; keep one"),
        ("models:\n\ta: b\n", 2, "indent with spaces, not tabs"),
        ("models: *sk-secret\n", 1, "not YAML: found undefined alias"),
        ("models: [a\n", 2, "not YAML: expected ',' or ']', but got '<stream end>'"),
        ("- a\n", 1, "it should hold keys such as `providers:` and `models:`"),
        ("just text", 1, "it should hold keys such as `providers:` and `models:`"),
        (b"models:\n  a: b/\xff\n", 2, "this line is not UTF-8; save the file as UTF-8"),
        ("models: \x01\n", 1, "this line has a character that YAML doesn't allow"),
        (
            "providers:\n"
            + "".join(f"  p{n}: &p{n} [{f'*p{n - 1}, ' * 10 if n else 1}]\n" for n in range(9)),
            None,
            "it has more than 20,000 values; is it the right file?",
        ),
        ("#" * 1_000_001, None, "it has more than 1,000,000 bytes; is it the right file?"),
    ],
)
def test_what_is_not_a_mapping_of_yaml_is_told_by_line_and_never_quoted(
    tmp_path: Path, text: str | bytes, line: int | None, message: str
) -> None:
    assert faults_of(tmp_path, text) == [(line, "", message)]


def test_a_date_is_refused_beside_other_faults(tmp_path: Path) -> None:
    assert faults_of(tmp_path, "models:\n  a: 2020-01-01\nlimit: 3\n") == [
        (2, "models.a", "should be text, a number, true or false; put it in quotes"),
        (3, "limit", "unknown key; did you mean 'limits'?"),
    ]


def test_anchors_and_merges_are_followed(tmp_path: Path) -> None:
    written(
        tmp_path,
        "providers:\n"
        "  a: &a {base_url: 'http://a', profile: {stop: &no false}}\n"
        "  b: {<<: *a, base_url: 'http://b'}\n",
    )
    profile = ProfileOverrides(stop=False)
    assert load_config(tmp_path).providers == {
        "a": ProviderConfig(base_url="http://a", profile=profile),
        "b": ProviderConfig(base_url="http://b", profile=profile),
    }


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    config_path(tmp_path).mkdir()
    with pytest.raises(ConfigError, match=r"workflow.yaml: it can't be read: Is a directory$"):
        load_config(tmp_path)


@settings(deadline=None)
@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_a_configuration_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    home = tmp_path_factory.mktemp("home")
    written(home, data)
    assert isinstance(loaded(home), Config | ConfigError)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["providers", "models", "limits", "x", "base_url", "kind", "profile", "every"]
            ),
            below,
            max_size=4,
        )
    ),
)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(["providers", "models", "limits", "supervisor", "z"]), values)
)
def test_any_tree_is_a_configuration_or_faults_that_have_lines(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, Any]
) -> None:
    home = tmp_path_factory.mktemp("home")
    written(home, json.dumps(tree))  # JSON is YAML
    found = loaded(home)
    if isinstance(found, ConfigError):
        assert all(fault.line == 1 or not fault.key for fault in found.faults)


def test_overrides_are_the_fields_of_a_profile_and_every_field_is_described() -> None:
    assert [field.name for field in fields(ProfileOverrides)] == [
        field.name for field in fields(Profile)
    ]
    for owner in (Config, ProviderConfig, ProfileOverrides, Limits, ModelPrice, SupervisorConfig):
        for field in fields(owner):
            assert field.metadata["description"]


def test_a_key_in_clear_is_accepted_and_not_shown(tmp_path: Path) -> None:
    written(tmp_path, "providers: {x: {base_url: 'http://x', api_key: sk-secret}}\n")
    config = load_config(tmp_path)
    assert config.providers["x"].api_key == "sk-secret"
    assert "sk-secret" not in repr(config)


SUPERVISED = """\
providers:
  x: {base_url: http://x}
  loc: {kind: local}
models: {default: x/m, watch: loc}
supervisor: """


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("{every: 3}", SupervisorConfig(every=3)),
        ("{every: 1, model: watch}", SupervisorConfig(every=1, model="watch")),
        ("{every: 2, model: x/a/b}", SupervisorConfig(every=2, model="x/a/b")),
        ("{every: 2, model: loc/}", SupervisorConfig(every=2, model="loc/")),
        ("{every: 2, prompt: Watch.}", SupervisorConfig(every=2, prompt="Watch.")),
        ("", None),
    ],
)
def test_a_supervisor_looks_every_few_steps_with_a_model_of_a_scene_or_of_its_own(
    tmp_path: Path, section: str, expected: SupervisorConfig | None
) -> None:
    written(tmp_path, SUPERVISED + section)
    assert load_config(tmp_path).supervisor == expected


@pytest.mark.parametrize(
    ("section", "key", "message"),
    [
        ("{model: x/m}", ".every", "it is missing; add it (steps from one look to the next)"),
        (
            "{every: 0}",
            ".every",
            "should be greater than or equal to 1 (steps from one look to the next)",
        ),
        ("{every: 1, promt: a}", ".promt", "unknown key; did you mean 'prompt'?"),
        (
            "{every: 1, model: wacht}",
            ".model",
            "'wacht' is neither a scene nor PROVIDER/MODEL; did you mean 'watch'?",
        ),
        (
            "{every: 1, model: y/m}",
            ".model",
            "no provider is called 'y'; choose one of loc, x",
        ),
        ("{every: 1, model: x/}", ".model", "no model is named; write `model: x/MODEL`"),
        ("3", "", "should be a mapping: indented lines of `key: value`"),
    ],
)
def test_a_supervisor_that_cannot_be_is_told_with_its_line(
    tmp_path: Path, section: str, key: str, message: str
) -> None:
    ((line, place, words),) = faults_of(tmp_path, SUPERVISED + section)
    assert (line, place) == (5, f"supervisor{key}")
    assert words.startswith(message)


def test_an_edit_keeps_comments_order_and_quotes(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """\
# ours

models:      # by scene
    default: 'a/b'   # the cheap one
    # more may follow

# where they are
providers:
    a:
        base_url: "http://a/v1"   # ours
        # no key needed

    # the second
    b: {base_url: http://b}

# how far
limits:
    max_steps: 5

# the end
""",
    )
    config = update_config(
        tmp_path,
        {
            "providers": {"a": {"max_attempts": 2}, "c": {"base_url": "http://c"}},
            "models": {"default": "a/new", "extract": "c/x"},
            "limits": {"max_steps": 6},
        },
    )
    assert config == load_config(tmp_path)
    assert (
        path.read_text()
        == """\
# ours

models:      # by scene
    default: 'a/new' # the cheap one
    # more may follow
    extract: c/x

# where they are
providers:
    a:
        base_url: "http://a/v1"   # ours
        # no key needed
        max_attempts: 2

    # the second
    b: {base_url: http://b}
    c:
        base_url: http://c

# how far
limits:
    max_steps: 6

# the end
"""
    )


def test_an_edit_removes_what_is_none_and_leaves_the_comments_after_it(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "models:\n  a: p/x\n  b: p/y  # gone\n\n# providers\n"
        "providers:\n  p: {base_url: http://p}\n",
    )
    update_config(tmp_path, {"models": {"b": None, "never": None}, "limits": None})
    assert path.read_text() == (
        "models:\n  a: p/x\n\n# providers\nproviders:\n  p: {base_url: http://p}\n"
    )


def test_an_edit_that_changes_nothing_leaves_the_file_alone(tmp_path: Path) -> None:
    path = written(tmp_path, FULL.replace("limits: {", "limits:   {"))
    before = path.stat()
    update_config(tmp_path, {"limits": {"max_steps": 7}, "models": {"review": "openai/org/model"}})
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_new_file_is_its_owners_alone_and_holds_references(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    config = update_config(home, SETUP)
    assert config_path(home).read_text() == (
        "providers:\n"
        "  openai:\n"
        "    base_url: https://api.openai.com/v1\n"
        "    api_key: ${OPENAI_API_KEY}\n"
        "models:\n"
        "  default: openai/m\n"
    )
    assert config == load_config(home)
    assert config_path(home).stat().st_mode & 0o777 == 0o600


def test_an_edit_keeps_the_mode_and_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.yaml"
    elsewhere.write_text("# only comments")
    elsewhere.chmod(0o640)
    config_path(tmp_path).symlink_to(elsewhere)
    update_config(tmp_path, {"limits": {"max_steps": 2}})
    assert config_path(tmp_path).is_symlink()
    assert elsewhere.read_text() == "# only comments\nlimits:\n  max_steps: 2\n"
    assert elsewhere.stat().st_mode & 0o777 == 0o640


def test_an_edit_quotes_a_reference_within_braces(tmp_path: Path) -> None:
    path = written(tmp_path, "providers: {x: {base_url: 'http://x'}}\n")
    update_config(tmp_path, {"providers": {"x": {"api_key": "${KEY}"}}})
    assert path.read_text() == "providers: {x: {base_url: 'http://x', api_key: '${KEY}'}}\n"


def test_an_edit_never_writes_a_key_in_clear(tmp_path: Path) -> None:
    path = written(tmp_path, FULL)
    with pytest.raises(ConfigError) as caught:
        update_config(tmp_path, {"providers": {"openai": {"api_key": "sk-secret"}}})
    assert str(caught.value) == (
        "providers.openai.api_key: a key isn't written to a file; put it into an environment "
        "variable and give its name as ${NAME}"
    )
    assert path.read_text() == FULL


SHARED = """\
providers:
  a: &a
    base_url: http://a
    api_key: ${A_KEY}
    profile: {dialect: json}
  b: *a
  c: {<<: *a, base_url: http://c}
"""


@pytest.mark.parametrize(
    "changes",
    [
        {"b": {"base_url": "http://b", "api_key": None}},
        {"c": {"base_url": "http://new", "api_key": None}},
        {"c": {"profile": {"dialect": "xml"}}},
        {"a": {"profile": {"dialect": "xml"}}},
    ],
    ids=["alias", "merged key", "merged mapping", "anchor"],
)
def test_an_edit_of_what_others_share_is_refused_instead_of_changing_them(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    path = written(tmp_path, SHARED)
    with pytest.raises(ConfigError, match="write the value out in each place"):
        update_config(tmp_path, {"providers": changes})
    assert path.read_text() == SHARED
    config = update_config(tmp_path, {"providers": {"c": {"base_url": "http://d"}}})
    assert config.providers["c"].base_url == "http://d"


def test_an_edit_whose_result_is_wrong_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"models.default: no provider is called 'opena'"):
        update_config(tmp_path, {"models": {"default": "opena/x"}})
    assert not config_path(tmp_path).exists()

    for text in ("- a\n", "models: [\n"):
        path = written(tmp_path, text)
        with pytest.raises(ConfigError):
            update_config(tmp_path, {"limits": {"max_steps": 2}})
        assert path.read_text() == text


def test_an_edit_can_mend_a_file_that_was_wrong(tmp_path: Path) -> None:
    written(tmp_path, "limits: {max_steps: 0}\nmodel: x\n")
    config = update_config(tmp_path, {"limits": {"max_steps": 1}, "model": None})
    assert config == Config(limits=Limits(max_steps=1))


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"workflow.yaml: it can't be written: "):
        update_config(tmp_path / "file" / "home", SETUP)


def test_processes_that_edit_at_once_lose_nothing(tmp_path: Path) -> None:
    update_config(tmp_path, SETUP)
    code = """
import sys
from pathlib import Path
from workflow_register import update_config
home, name = Path(sys.argv[1]), sys.argv[2]
sys.stdin.read()
for n in range(10):
    update_config(home, {"models": {f"{name}{n}": "openai/m"}})
"""
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name], stdin=subprocess.PIPE)
        for name in "abc"
    ]
    for child in children:
        child.communicate()
    assert [child.returncode for child in children] == [0, 0, 0]
    names = {f"{name}{n}" for name in "abc" for n in range(10)}
    assert load_config(tmp_path).models.keys() == {"default", *names}
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"workflow.yaml", ".workflow.yaml.lock"}


def test_the_lock_of_a_process_that_died_is_free(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from workflow_register._files import locked
with locked(Path(sys.argv[1]) / ".workflow.yaml.lock", timeout_s=1):
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert update_config(tmp_path, SETUP) == load_config(tmp_path)


scalars = st.none() | st.sampled_from(["p/x", "q/y"])
patches = st.dictionaries(st.sampled_from(["default", "a", "b"]), scalars)


@settings(deadline=None)
@given(st.lists(patches, max_size=4))
def test_edits_say_what_the_file_then_says(
    tmp_path_factory: pytest.TempPathFactory, models: list[Mapping[str, str | None]]
) -> None:
    home = tmp_path_factory.mktemp("home")
    text = "# top\nproviders: {p: {base_url: 'http://p'}, q: {base_url: 'http://q'}}\n\n# mid\n"
    written(home, text + "models:\n  default: p/x  # eol\n\n# low\nlimits: {max_steps: 3}\n# end\n")
    expected = {"default": "p/x"}
    for patch in models:
        config = update_config(home, {"models": patch})
        expected = {k: v for k, v in {**expected, **patch}.items() if v is not None}
        assert config == load_config(home)
        assert {scene: each.model for scene, each in config.models.items()} == expected
    now = config_path(home).read_text()
    assert now.startswith(text)
    assert now.endswith("\nlimits: {max_steps: 3}\n# end\n")


def test_limits_and_prices(tmp_path: Path) -> None:
    written(
        tmp_path,
        "limits:\n"
        "  max_rounds: 30\n  max_tokens: 200_000\n  max_cost: 1.5\n  max_seconds: 600\n"
        "  max_depth: 2\n"
        "  prices:\n    m: {input: 0.4, output: 1.6}\n"
        "    org/n: {input: 1, output: 2, cached: 0}\n",
    )
    assert load_config(tmp_path).limits == Limits(
        max_rounds=30,
        max_tokens=200_000,
        max_cost=1.5,
        max_seconds=600,
        max_depth=2,
        prices={
            "m": ModelPrice(input=0.4, output=1.6),
            "org/n": ModelPrice(input=1, output=2, cached=0),
        },
    )


def test_wrong_limits_and_prices_are_told_with_their_place(tmp_path: Path) -> None:
    written(
        tmp_path,
        "limits:\n  max_cost: -1\n  max_token: 5\n"
        "  prices:\n    m: {input: 1, ouput: 2}\n    n: {input: x, output: 1}\n",
    )
    error = loaded(tmp_path)
    assert isinstance(error, ConfigError)
    words = str(error)
    for part in (
        "limits.max_cost",
        "'max_tokens'",
        "did you mean 'output'",
        "limits.prices.n.input",
    ):
        assert part in words


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ("{a b: x}", "the name of a header has letters"),
        ("{x-key: $KEY}", "providers.x.headers.x-key: write a reference in it as ${HOST_KEY}"),
        ("{x-key: [1]}", "providers.x.headers.x-key: should be a valid string"),
        ("[x]", "should be a mapping"),
    ],
)
def test_headers_that_can_not_be_right_are_named(tmp_path: Path, headers: str, words: str) -> None:
    written(tmp_path, f"providers:\n  x:\n    base_url: http://x/v1\n    headers: {headers}\n")

    with pytest.raises(ConfigError) as raised:
        load_config(tmp_path)
    assert words in str(raised.value)


def test_a_plug_in_takes_no_headers(tmp_path: Path) -> None:
    written(tmp_path, "providers: {x: {kind: local, headers: {a: b}}}\n")

    with pytest.raises(ConfigError, match="remove headers, or the kind"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("model", "place", "message"),
    [
        ("{temperature: 0}", ".model", "it is missing; add it (provider/model)"),
        ("{model: q/m}", ".model", "no provider is called 'q'; choose one of p"),
        ("{model: 3}", ".model", "should be a valid string (provider/model)"),
        ("{model: p/m, temprature: 0}", ".temprature", "unknown key; did you mean 'temperature'?"),
        ("{model: p/m, temperature: hot}", ".temperature", "should be a valid number (how freely"),
        ("{model: p/m, temperature: -1}", ".temperature", "should be greater than or equal to 0"),
        ("{model: p/m, temperature: .inf}", ".temperature", "should be a finite number"),
        ("{model: p/m, top_p: 2}", ".top_p", "should be less than or equal to 1 (from 0 to 1"),
        ("{model: p/m, seed: 0.5}", ".seed", "should be a valid integer (a whole number"),
        ("3", "", "should be a valid string"),
        ("[p/m]", "", "should be a valid string"),
    ],
)
def test_a_scene_with_settings_is_checked_as_it_is_written(
    tmp_path: Path, model: str, place: str, message: str
) -> None:
    text = f"providers:\n  p: {{base_url: http://p}}\nmodels:\n  poems: {model}\n"
    (fault,) = faults_of(tmp_path, text)

    assert fault[:2] == (4, f"models.poems{place}")
    assert fault[2].startswith(message)


def test_a_scene_with_settings_keeps_them_when_only_its_model_is_changed(tmp_path: Path) -> None:
    text = "providers: {p: {base_url: http://p}}\nmodels:\n  a: {model: p/x, seed: 1}  # mine\n"
    written(tmp_path, text)
    config = update_config(tmp_path, {"models": {"a": {"model": "p/y"}}})

    assert config.models == {"a": ModelConfig(model="p/y", seed=1)}
    assert config_path(tmp_path).read_text() == text.replace("p/x", "p/y")
