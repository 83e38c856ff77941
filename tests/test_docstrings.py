"""What the reference shows of the public classes: each field is explained."""

from __future__ import annotations

import ast
import inspect
import textwrap

import uwf


def fields_without_words(source: str) -> list[str]:
    """The fields that no docstring follows, nor a line in the class's own `Attributes:`."""
    (tree,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(tree, ast.ClassDef)
    about = ast.get_docstring(tree) or ""
    following = [*tree.body[1:], None]
    return [
        each.target.id
        for each, after in zip(tree.body, following, strict=True)
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and not each.target.id.startswith("_")
        and "ClassVar" not in ast.unparse(each.annotation)
        and not is_text(after)
        and f"    {each.target.id}: " not in about
        and "metadata=_about(" not in ast.unparse(each)  # what a configuration says is described so
    ]


def is_text(node: ast.stmt | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def test_each_field_of_an_authors_class_is_explained() -> None:
    named = [getattr(uwf, name) for name in uwf.__all__]
    bare = {
        each.__qualname__: names
        for each in named
        if inspect.isclass(each) and (names := fields_without_words(inspect.getsource(each)))
    }

    assert bare == {}
