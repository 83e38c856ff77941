"""The whole way of a workflow, as a person goes it, in real processes."""

from pathlib import Path

import anyio

from workflow_reactor.testing import loopback_server, say

from .cli import Cli


async def test_setup_bundle_add_run_show(uwf: Cli, entry: Path) -> None:
    run = uwf.process
    async with uwf.scripted([say('{"value": "Salut"}')]) as server:
        bundled = await run("bundle", "hello.py")
        assert bundled.code == 0
        path = Path(bundled.out.strip())
        assert path.parent == uwf.home / "bundles"
        assert "bundled 2 modules; roles: greeter" in bundled.err
        await anyio.Path(entry).unlink()

        added = await run("add", "say-hello", path)
        assert (added.code, added.out) == (0, "say-hello\n")
        assert (await run("workflow", "list")).out.startswith("say-hello\t")

        ran = await run("run", "say-hello", "Greet Ada.")
        assert (ran.code, ran.out) == (0, '"Salut"\n')
        assert "greeter (step 1)" in ran.err
        assert "completed (0)" in ran.err

        shown = await run("show")
        assert shown.code == 0
        assert "state      completed (return code 0)" in shown.out
        assert "prompt     Greet Ada." in shown.out
        assert "tokens     10 in (0 cached), 5 out, 1 model calls" in shown.out

    assert "Greet." in server.requests[0]["messages"][0]["content"]


async def test_every_command_speaks_json(uwf: Cli, entry: Path) -> None:
    async with loopback_server([say('{"value": "Salut"}')]) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        setup = await uwf("setup", "--json", "--base-url", url, "--model", "m", "--provider", "p")
        path = str(uwf.home / "workflow.yaml")
        expected = {"path": path, "scene": "default", "model": "p/m", "tested": False}
        assert setup.lines == [expected]
        (bundle,) = (await uwf("bundle", "hello.py", "--output", "out", "--json")).lines
        assert bundle["modules"] == ["hello.py", "words.py"]
        assert (uwf.folder / bundle["path"]).name == f"{bundle['hash']}.zip"
        added = (await uwf("add", "say-hello", "hello.py", "--json")).lines
        assert added == [{"name": "say-hello", "hash": bundle["hash"]}]
        (listed,) = (await uwf("workflow", "list", "--json")).lines
        assert (listed["name"], listed["roles"]) == ("say-hello", ["greeter"])

        events = (await uwf("run", "say-hello", "Greet.", "--json")).lines
        assert [event["event"] for event in events] == [
            "ThreadStarted", "RoleStarted", "RoundStarted", "ModelReplied", "RoleFinished",
            "ThreadEnded",
        ]  # fmt: skip
        (thread,) = (await uwf("show", "--json", "--turns")).lines
        assert thread["thread"] == events[0]["thread"]
        assert thread["steps"][0]["value"] == "Salut"
        assert thread["turns"][0]["attempts"][0]["parts"][0]["key"] == "llm/0"
        (row,) = (await uwf("thread", "list", "--json")).lines
        assert (row["thread"], row["state"], row["steps"]) == (thread["thread"], "completed", 1)
    models = (await uwf("model", "list", "--json")).lines
    assert sum(model["default"] for model in models) == 1
