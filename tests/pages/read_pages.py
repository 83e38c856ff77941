"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sybil import Document, Region
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, RawFencedCodeBlockLexer

from .run_blocks import PythonBlock

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    + [*ROOT.glob("docs/*.md"), *ROOT.glob("packages/*/README.md")]
)

_FENCES = RawFencedCodeBlockLexer(re.compile(r"(?P<language>[^\n]*)\n"))
_COMMENTS = DirectiveInHTMLCommentLexer("setup|check|not run", arguments="[^\n]*?")


@dataclass(frozen=True)
class Block:
    """A block of code as it stands on a page, or a hidden set-up."""

    page: str
    line: int
    """Of its first line of code."""
    language: str
    code: str
    above: str
    """The last line of text before it."""
    not_run: str | None = None
    """Why nothing checks it, as the comment above says."""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def fault(self) -> str | None:
        """What is wrong with the block before anything runs it."""
        if self.not_run is not None:
            return None if len(self.not_run) > 10 else "`not run:` needs a reason"
        if self.language == "python" and any(
            isinstance(each, ast.Constant) and each.value is ... for each in _nodes(self.code)
        ):
            return "`...` stands for code that isn't there"
        return None


def read_page(path: Path) -> list[Block]:
    """The blocks of a page in order, and those of its comments."""
    document = Document(path.read_text(encoding="utf-8"), str(path))
    fences = list(_FENCES(document))
    comments = [  # those within a block are shown, such as an example of a comment
        each
        for each in _COMMENTS(document)
        if not any(fence.start < each.start < fence.end for fence in fences)
    ]
    regions = [*fences, *comments]
    return list(_blocks(path.relative_to(ROOT).as_posix(), document.text, regions))


def _blocks(page: str, text: str, regions: list[Region]) -> Iterator[Block]:
    not_run: str | None = None
    for region in sorted(regions, key=lambda each: each.start):
        directive = region.lexemes.get("directive")
        if directive == "not run":
            not_run = region.lexemes["arguments"] or region.lexemes["source"]
            continue
        source = region.lexemes["source"]
        line = text.count("\n", 0, region.start + source.offset) + 1
        before = text[: region.start].rstrip().rpartition("\n")[2]
        language = "setup" if directive else region.lexemes["language"].strip()
        yield Block(page, line, language, str(source), before, not_run)
        not_run = None


def python_blocks(blocks: list[Block]) -> list[PythonBlock]:
    """What is run of a page, each with what the page says that it prints."""
    found: list[PythonBlock] = []
    for block in blocks:
        if block.not_run is not None:
            continue
        if block.language in {"python", "setup"}:
            found.append({"line": block.line, "code": block.code, "prints": None})
        elif found and says_what_is_printed(block):
            found[-1]["prints"] = block.code
    return found


def says_what_is_printed(block: Block) -> bool:
    """Whether a plain block is the output of the block before it: "It prints:" stands above."""
    return block.language == "" and re.search(r"\bprints\b", block.above) is not None


def _nodes(code: str) -> Iterator[ast.AST]:
    try:
        return ast.walk(ast.parse(code))
    except SyntaxError:
        return iter(())  # said by who runs it, as a block may have `await` at its top
