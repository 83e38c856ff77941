"""Git for code: trees and commits made from what is in a folder, and no program of it is run.

A commit is made of a tree that was taken before the tests ran, with a date that is recorded. So
making it twice gives the same commit, and a run that was killed ends in the same one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from workflow_templates._errors import GitFailed

_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.quotePath=false",
    "commit.gpgSign=false",
    "protocol.ext.allow=never",
    "advice.addEmbeddedRepo=false",
)
_CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")
"""What tests and checks leave behind, whether `.gitignore` names it or not."""
_TIMEOUT_S = 120
_ZERO = "0" * 40


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """Whom commits name, as author and as committer."""

    name: str = "United Workforce"
    """As git shows it."""
    email: str = "uwf@localhost"
    """As git shows it."""
    timestamp_s: int | None = None
    """When it was, in seconds since 1970 (UTC); `None` for when the thread began."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository whose files begin in a folder. Each method starts git, and waits for it."""

    folder: Path

    def check(self) -> None:
        """See that there is one.

        Raises:
            GitFailed: the folder is in none, or lies below the top of one.
        """
        top = self.run("rev-parse", "--show-toplevel").rstrip("\n")
        if Path(top).resolve() != self.folder.resolve():
            raise GitFailed(f"{self.folder} lies in the repository {top}; give that folder")

    def head(self) -> str:
        """The commit that is checked out; empty before the first."""
        done = self._start(["rev-parse", "--verify", "-q", "HEAD^{commit}"])
        return done.stdout.strip() if done.returncode == 0 else ""

    def branch(self) -> str:
        """The branch that is checked out; empty where none is."""
        done = self._start(["symbolic-ref", "-q", "--short", "HEAD"])
        return done.stdout.strip() if done.returncode == 0 else ""

    def knows(self, commit: str) -> bool:
        """Whether this is the whole hash of a commit that is here."""
        if len(commit) not in (40, 64) or not all(each in "0123456789abcdef" for each in commit):
            return False
        return self._start(["cat-file", "-e", f"{commit}^{{commit}}"]).returncode == 0

    def has_in_history(self, commit: str) -> bool:
        """Whether a commit is what is checked out, or before it."""
        done = self._start(["merge-base", "--is-ancestor", commit, "HEAD"])
        return self.knows(commit) and done.returncode == 0

    def tree_of(self, commit: str) -> str:
        """The tree of a commit; the empty one before the first."""
        if not commit:
            return self.run("hash-object", "-t", "tree", "-w", os.devnull).strip()
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def take_tree(self, base: str, *, without: Sequence[str] = ()) -> str:
        """Write the files as they are now as a tree. The index of the repository stays as it is.

        Args:
            base: the commit whose files are taken for known.
            without: paths that are left as they are in `base`.
        """
        with tempfile.TemporaryDirectory(prefix="uwf-index-") as folder:
            index = Path(folder, "index")
            own = self.folder / self.run("rev-parse", "--git-path", "index").rstrip("\n")
            if own.is_file():
                shutil.copyfile(own, index)  # with what git knows of the files, not to read them
            env = {"GIT_INDEX_FILE": str(index)}
            self.run(
                *(["read-tree", "--reset", base] if base else ["read-tree", "--empty"]), env=env
            )
            caches = [f":(exclude,glob)**/{name}/**" for name in _CACHES]
            others = [f":(exclude,literal,top){path}" for path in without]
            self.run("add", "-A", "--", ".", *caches, *others, env=env)
            return self.run("write-tree", env=env).strip()

    def changed(self, old: str, new: str) -> dict[str, str]:
        """What differs between two trees: `A`, `M`, `D` or `T` by path."""
        words = self.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", old, new)
        fields = words.split("\0")
        return dict(zip(fields[1::2], fields[::2], strict=False))

    def diff(self, old: str, new: str, *, binary: bool = False) -> str:
        """The difference of two trees as a patch."""
        more = ["--binary", "--full-index"] if binary else []
        plain = ["--no-color", "--no-ext-diff", "--no-textconv"]
        return self.run("diff-tree", "-r", "-p", *plain, *more, old, new)

    def write_files(self, tree: str, into: Path) -> None:
        """Write the files of a tree into an empty folder, which is no repository."""
        with tempfile.TemporaryDirectory(prefix="uwf-index-") as folder:
            env = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            self.run("read-tree", tree, env=env)
            self.run("checkout-index", "-a", f"--prefix={into}/", env=env)

    def commit(self, tree: str, parent: str, message: str, author: Author) -> str:
        """Make a commit of a tree and check it out; again, if that was done, without effect.

        Raises:
            GitFailed: another commit is checked out than the parent.
        """
        date = f"@{author.timestamp_s or 0} +0000"
        env = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", author.name), ("EMAIL", author.email), ("DATE", date))
        }
        parents = ["-p", parent] if parent else []
        made = self.run("commit-tree", *parents, tree, env=env, stdin=message).strip()
        head = self.head()
        if head not in (made, parent):
            raise GitFailed(
                f"somebody committed meanwhile: {head or 'nothing'} is checked out and not "
                f"{parent or 'nothing'}; go back to it, or begin again"
            )
        if head != made:
            self.run("update-ref", "-m", "commit by uwf", "HEAD", made, parent or _ZERO)
        self.run("reset", "-q")
        return made

    def run(
        self, *words: str, env: Mapping[str, str] | None = None, stdin: str | None = None
    ) -> str:
        """Run git and return what it prints.

        Raises:
            GitFailed: it exits with another code than 0.
        """
        done = self._start(words, env=env, stdin=stdin)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
            raise GitFailed(f"git {words[0]} in {self.folder}: {said}")
        return done.stdout

    def _start(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        settings = [word for each in _SETTINGS for word in ("-c", each)]
        ours = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        plain = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        try:
            return subprocess.run(
                ["git", *settings, *words],
                cwd=self.folder,
                env={**ours, **plain, **(env or {})},
                input=stdin or "",
                capture_output=True,
                encoding="utf-8",
                errors="surrogateescape",
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitFailed(f"git {words[0]} in {self.folder}: {error}") from error
