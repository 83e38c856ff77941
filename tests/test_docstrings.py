"""What the reference shows of the public classes: each field is explained."""

from __future__ import annotations

import ast
import inspect
import textwrap
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent


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


def public_classes() -> list[type]:
    """Those of every package, and of what it brings for tests."""
    modules = [path.parent for path in ROOT.glob("packages/*/src/*/__init__.py")]
    with_fakes = [path.name for path in modules if list(path.glob("testing*"))]
    names = [*(path.name for path in modules), *(f"{name}.testing" for name in with_fakes)]
    found = (
        getattr(module, name)
        for module in map(import_module, names)
        for name in getattr(module, "__all__", ())
    )
    return list(dict.fromkeys(each for each in found if inspect.isclass(each)))


def test_each_field_of_a_public_class_is_explained() -> None:
    bare = {
        each.__qualname__: names
        for each in public_classes()
        if (names := fields_without_words(inspect.getsource(each)))
    }

    assert bare == {}
