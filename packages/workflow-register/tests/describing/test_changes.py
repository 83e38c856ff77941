"""What a version changed, in lines."""

from hypothesis import given
from hypothesis import strategies as st

from workflow_protocol import END, START, Edge, JsonObject, RoleDescription, WorkflowDescription
from workflow_register import describe_changes, module_changes


def role(prompt: str = "p", schema: JsonObject | None = None, about: str = "a") -> RoleDescription:
    return RoleDescription(description=about, system_prompt=prompt, schema=schema or {})


def described(
    roles: dict[str, RoleDescription], *edges: tuple[str, str, str | None], words: str = "d"
) -> WorkflowDescription:
    return WorkflowDescription(
        description=words,
        roles=roles,
        edges=[Edge(source=a, target=b, condition=c) for a, b, c in edges],
    )


def fields(**properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties)}


def test_each_change_is_a_line() -> None:
    before = described(
        {
            "kept": role("short", fields(x={"type": "string"}, y={"type": "string"})),
            "old": role(),
        },
        (START, "kept", None), ("kept", "old", "done"), ("kept", END, None), ("old", END, None),
    )  # fmt: skip
    after = described(
        {
            "kept": role("much longer", fields(x={"type": "integer"}, z={}), "b"),
            "new": role(),
        },
        (START, "kept", None), ("kept", "new", "done"), ("kept", END, None), ("new", END, None),
        words="e",
    )  # fmt: skip
    assert describe_changes(before, after) == [
        "~ description: d → e",
        "+ role new",
        "- role old",
        "~ role kept: description: a → b",
        "~ role kept: prompt (5 → 11 characters)",
        "+ role kept: field z",
        "- role kept: field y",
        "~ role kept: field x: type string → integer",
        "+ kept → new when done",
        "+ new → END",
        "- kept → old when done",
        "- old → END",
    ]


def test_another_order_of_transitions_is_a_change() -> None:
    edges = [("a", "b", "x"), ("a", "c", "y"), ("a", END, None)]
    before = described({}, *edges)
    after = described({}, edges[1], edges[0], edges[2])
    assert describe_changes(before, after) == ["~ a: the order of its transitions"]


def test_a_schema_that_reads_the_same_in_words_is_told_as_changed() -> None:
    before, after = (described({"a": role(schema={"if": {"type": kind}})}) for kind in "ab")
    assert describe_changes(before, after) == ["~ role a: schema"]


def test_modules_are_compared_by_their_bytes() -> None:
    before = {"entry.py": b"1", "gone.py": b"", "same.py": b"s"}
    after = {"entry.py": b"2", "same.py": b"s", "new.py": b""}
    assert module_changes(before, after) == [
        "+ module new.py",
        "- module gone.py",
        "~ module entry.py",
    ]


NAMES = st.sampled_from(["a", "b", END])
TABLES = st.lists(st.tuples(NAMES, NAMES, st.none() | NAMES), max_size=4)


@given(TABLES, TABLES)
def test_two_tables_have_no_changes_exactly_if_their_rows_are_equal(
    one: list[tuple[str, str, str | None]], other: list[tuple[str, str, str | None]]
) -> None:
    def rows(table: list[tuple[str, str, str | None]]) -> dict[str, list[tuple[str, str | None]]]:
        return {name: [row[1:] for row in table if row[0] == name] for name, *_ in table}

    changes = describe_changes(described({}, *one), described({}, *other))
    assert (changes == []) == (rows(one) == rows(other))
