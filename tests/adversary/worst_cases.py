"""Texts that are the worst for parsers: what opens and never closes, closes unopened, nests.

`shapes(*families)` gives functions that make such a text of about so many characters. A new parser
gets the families whose signs it knows; a new sign is added to its family.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

Shape = Callable[[int], str]

UNITS: dict[str, Sequence[str]] = {
    "json": (
        *("{", "[", '"', '\\"', "\\", "}", "]", ",", ":", " ", "\n", "\t", "\x00", "a", "9", "-"),
        *("{}", "[]", "{ }", '{"', '["', "[{", '{"a":', "[1,", '{"a":1}', '"a",', "[x ", "{x "),
        *("1e9", "0.", "NaN ", "-Infinity,", "null,", "\\u", "\\ud83d", "\\ud83d\\ude00", "\ufeff"),
        *("'", "\\n", '<a href=\\"x\\">\n', '"\\', "é", "\U0001f600", '[[1],"', '{"a":[', "`"),
    ),
    "fences": ("```", "```json\n", "```\n", "```json\n{", "\n```\n{}"),
    "reasoning": ("<think>", "</think>", "<think></think>", "<thinking>", "<think", "</reasoning>"),
    "calls": (
        *("<tool_call>", "</tool_call>", "<tool_calls>", "<tool_call>{", "<function_call>{}"),
        *('"name" ', '"name":"', '{"name":"a","arguments":{}}', '[{"name":"a"},', '{"function":'),
        *('{"tool_calls":[', "<tool_call></tool_calls>", "<TOOL_CALL>"),
    ),
    "errors": (
        *('\\\\"', '"retry_after":', '"retry_after":1', '"retry_delay', "retry ", "try 1", "try "),
        *("1s", "1 ", "and ", "wait 1m", "rate_limit", '{"error":', '{"detail":[', "resets in "),
        *(
            "exceed",
            "input ",
            "max",
            "tokens ",
            "maximum ",
            "context length ",
            "invalid ",
            "field '",
        ),
        *("insufficient", "throttl", "model_", "a ", "prompt has 1 ", "_", "-", ".", "reduce the "),
        *("http://", "http://a@", "https://h?", "&a", "=", "Bearer ", "sk-", "eyJ", "[", "a1-"),
    ),
    "actions": (
        *("a=1, ", "a=[", "{a:", '"a"=', "a=", "(", '"""', "'", "\\\\", "a", "1.1", "1e1", " "),
        *('\\"', '"', "[", "{", "{a:[", '""', "''", "9", "C:\\", "-", "\\ud800", "\\x"),
    ),
    "xml": (
        *("<action>", "</action>", "<action", "<thought>", "</thought>", "<observation", "<"),
        *("<final_answer>", "</final_answer ", "<action >", "<thought><action>x ", "</thought ><"),
        *("a(", "a=", "(", ")", '"""', "'''", "a.b", "a-", "1.1", "1e1", "a=1,", "{a:", '"a"='),
        *("\\x", "a b", 'x="', "\\'", "<final_answer>{", "<observation>", "a(b=[", "C:\\", " "),
    ),
}
PREFIXES: dict[str, Sequence[str]] = {
    "json": ("", '{"a":"', '"', "[", '{"a":', "[[[", "x", '{"a":1} ', '{"content": "\\"'),
    "fences": ("", "```json\n", '```json\n{"a":"'),
    "reasoning": ("", "<think>", "</think>{}"),
    "calls": ("", "<tool_call>", '<tool_call>{"name": "a", "arguments": "', '{"name": "a"'),
    "errors": ("", '{"error":{"message":"', "try again in ", '"retry_after": '),
    "actions": ("f(", 'f(a="', 'f(a="""', "f(a='", "f(a=[", "f(a={", "f(a=1,", "f"),
    "xml": (
        *("", "<action>", '<action>f(a="', '<action>f(a="""', "<action>f(a=", "<thought>"),
        *("<action>f(a=[", "<action>f(", "<final_answer>", '<final_answer>{"a":"', "<think>"),
    ),
}


def shapes(*families: str) -> Iterator[tuple[str, Shape]]:
    """Every beginning with every unit repeated, and every unit before another; with a name each."""
    units = [unit for family in families for unit in UNITS[family]]
    prefixes = dict.fromkeys(prefix for family in families for prefix in PREFIXES[family])
    for prefix, unit in itertools.product(prefixes, units):
        yield f"{prefix!r} {unit!r}*", _repeated(prefix, unit)
    for first, second in itertools.pairwise([*units, units[0]]):
        yield f"{first!r}* {second!r}*", _halves(first, second)


def _repeated(prefix: str, unit: str) -> Shape:
    return lambda size: prefix + unit * (size // len(unit))


def _halves(first: str, second: str) -> Shape:
    return lambda size: first * (size // 2 // len(first)) + second * (size // 2 // len(second))
