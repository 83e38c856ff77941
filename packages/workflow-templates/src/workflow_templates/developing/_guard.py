"""A guard for committers that are models: what they say they committed has to be true."""

from __future__ import annotations

from anyio import to_thread

from workflow_agent_react import Allow, Decision, Deny, ProposedCall
from workflow_protocol import ThreadContext
from workflow_templates._git import Repository
from workflow_templates.developing import _roles


async def commit_is_real(call: ProposedCall, ctx: ThreadContext) -> Decision:
    """A guard for a committer that is a model: the tests passed, and git has the commit.

    It looks at `resolve` with a `Commit` as its value. Where a committer of your own has a shell,
    give it this guard; the committer of the template is code and needs none.
    """
    if call.name != "resolve" or not call.arguments.get("hash"):
        return Allow()
    tested = ctx.meta(_roles.tester)
    if tested is None or not tested.passed:
        return Deny("the tests have not passed; resolve with an empty hash and the problem")
    commit = str(call.arguments["hash"])
    git = Repository(ctx.start.workspace)
    if not await to_thread.run_sync(git.has_in_history, commit):
        return Deny(f"git knows no commit {commit!r} here; commit first, and give its whole hash")
    if await to_thread.run_sync(git.tree_of, commit) != tested.tree:
        return Deny(f"{commit} has other files than those that were tested; commit these")
    return Allow()
