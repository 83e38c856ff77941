"""Whatever YAML can say is a configuration, or faults that have lines. Never a traceback."""

import random
import time
import warnings
from pathlib import Path

import pytest

from workflow_register import Config, ConfigError
from workflow_register.config._yaml import parse_config

BASE = "providers:\n  p:\n    base_url: http://x/v1\n"
BODY = f"{BASE}    extra_body: "

REFUSED = {
    "list key": BODY + "{a: 0, [1, {b: c}]}",
    "list key of one": BODY + "{[1]: 2}",
    "mapping key": BODY + "{{a: 1}: 2}",
    "long list key": f"{BASE}    extra_body:\n      ? [1, {{b: c}}]\n      : 3\n",
    "key that is a list at the top": "? [a, b]\n: c\n",
    "alias as key": "&a a: 1\n*a : 2\n",
    "own tag": BODY + "!foo {a: 1}",
    "python tag": BODY + "!!python/object:os.system {a: 1}",
    "binary": BODY + "{a: !!binary '*'}",
    "set": "models: !!set {default}",
    "ordered map": BODY + "{f: !!omap {a: 1}}",
    "integer that is none": BODY + "{f: !!int x}",
    "boolean that is none": BODY + "{f: !!bool x}",
    "date": BODY + "{f: 2020-01-01}",
    "date that is none": BODY + "{f: 2020-99-99}",
    "alias in a circle": BODY + "&a {x: *a}",
    "merge in a circle": BODY + "&a {<<: *a}",
    "merge of a number": BODY + "{<<: 3}",
    "undefined alias": BODY + "{x: *nope}",
    "deep lists": BODY + "[" * 20_000 + "]" * 20_000,
    "deep mappings": BODY + "{a: " * 3_000 + "1" + "}" * 3_000,
    "deep dashes": "- " * 5_000,
    "deep questions": "? " * 5_000,
    "deep indentation": "".join(f"{' ' * depth}a:\n" for depth in range(700)),
    "NUL": BASE + "\0",
    "control": BASE + "#\x07",
    "second BOM": "\ufeff\ufeff" + BASE,
    "surrogate": BODY + '{a: "\\ud800"}',
    "surrogate itself": "a: \ud800",
    "tab": "providers:\n\tp: 1\n",
    "two documents": f"{BASE}---\n{BASE}",
    "YAML 9": f"%YAML 9.9\n---\n{BASE}",
    "long integer": BODY + "{a: " + "9" * 5_000 + "}",
    "long hexadecimal": BODY + "{a: 0x" + "f" * 50_000 + "}",
    "NaN": BODY + "{a: .nan}",
    "infinity": BODY + "{a: -.inf}",
    "twice": BASE + BASE,
    "number as key": BODY + "{1: a}",
    "null as key": BODY + "{null: 1}",
    "true as key": BODY + "{yes: 1, true: 2}",
    "open quote": BODY + '{a: "x',
    "open brackets": (BODY + "[\n") * 500,
    "many values": BODY + "{" + "".join(f"a{n}: b, " for n in range(20_000)) + "}",
}
BOMBS = {
    "laughs": "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    "merged laughs": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12)),
    "laughs in mappings": "a0: &a0 {x: 1, y: 2}\n"
    + "".join(
        f"a{n}: &a{n} {{{', '.join(f'k{k}: *a{n - 1}' for k in range(10))}}}\n"
        for n in range(1, 12)
    ),
}
TAKEN = {
    "empty": "",
    "comment": "# x\n",
    "BOM": BASE,
    "anchors": f"{BASE}    extra_body:\n" + "".join(f"      k{n}: &x{n} {n}\n" for n in range(300)),
    "alias": BODY + "{a: &a [1], b: *a, c: {<<: {d: 1}}}",
    "no tag": BODY + "{b: ! x}",
    "YAML 1.1": f"%YAML 1.1\n---\n{BASE}",
    "64 bit": BODY + f"{{a: {2**64}, b: -1.5e300}}",
    "deep": BODY + "{a: " + "[" * 50 + "]" * 50 + "}",
}


def parse(text: str) -> Config:
    return parse_config(Path("workflow.yaml"), text)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_no_configuration_needs_is_a_fault_with_its_line(kind: str) -> None:
    began = time.monotonic()
    with pytest.raises(ConfigError) as raised:
        parse(REFUSED[kind])
    assert all(fault.line for fault in raised.value.faults), raised.value
    assert time.monotonic() - began < 10  # 9 s of recursion went before; a machine may be busy


@pytest.mark.parametrize("kind", BOMBS)
def test_aliases_of_aliases_are_counted_and_not_followed(kind: str) -> None:
    with pytest.raises(ConfigError):
        parse(BOMBS[kind])


@pytest.mark.parametrize("kind", TAKEN)
def test_what_is_plain_is_taken(kind: str) -> None:
    assert isinstance(parse(TAKEN[kind]), Config)


def test_a_thousand_anchors_of_one_name_are_one_warning() -> None:
    text = f"{BASE}    extra_body:\n" + "".join(f"      k{n}: &x {n}\n" for n in range(300))
    with pytest.warns(UserWarning, match=r"workflow.yaml:6: an earlier anchor") as warned:
        parse(text)
    assert len(warned) == 1


PIECES = [
    "providers:", "models:", "limits:", "supervisor:", "extra_body:", "default:", "  ", "\n",
    "\n  ",
    "\n    ", "\n      ", "- ", "? ", ": ", ", ", "{", "}", "[", "]", "&a ", "*a", "<<: ", "!x ",
    "!!int ", "!!set ", "!!binary ", "|\n", ">-\n", "'", '"', "#", "---\n", "...\n", "%YAML 1.2\n",
    "~", "null", "true", "1", "-1.5e3", ".nan", "2020-01-01", "12:30:45", "0x1f", "a", "é", "\t",
    "\r\n", "\u2028", "\ufeff", "\x7f", "\0", "${KEY}", "http://x/v1", "p:", "base_url: ",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_generated_files_are_a_configuration_or_faults(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(400):
        text = rng.choice([BASE, BODY, "", "models: "]) + "".join(
            rng.choices(PIECES, k=rng.randint(1, 14))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                parse(text)
            except ConfigError as error:
                assert error.faults, text  # noqa: PT017 - it may be right as well
