"""The real agents, installed by `scripts/agents`, on a scripted model on a loopback port."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from workflow_agent_cli import AgentFailed, AgentTimedOut, create_cli_agent
from workflow_agent_cli.testing import ModelServer, model_server
from workflow_cas import open_store
from workflow_execute import Engine, Workflow, create_workflow, list_threads
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    RoleDefinition,
    Usage,
    WorkflowDefinition,
)
from workflow_reactor import Secret
from workflow_reactor.testing import ScriptedLlm, call
from workflow_util_agent import agent_to_adapter

FOLDER = Path(os.environ.get("UWF_AGENTS") or Path.home() / ".cache/uwf/agents")
AGENTS = ["claude", "codex", "hermes"]
KEY = "sk-loopback-1234"

pytestmark = [
    pytest.mark.agents,
    pytest.mark.timeout(240),  # hermes alone starts for 10 s of CPU
    pytest.mark.skipif(
        not all((FOLDER / "bin" / name).exists() for name in AGENTS),
        reason="the real agents are not installed; `scripts/agents` does it",
    ),
]
every_agent = pytest.mark.parametrize("name", AGENTS)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where an agent works, and what its model says."""

    home: Path
    workspace: Path
    model: ModelServer

    def agent(self, name: str, *, url: str = "", timeout_s: float = 120) -> Workflow:
        """A workflow of one role that the agent carries out."""
        url = url or self.model.url
        env: dict[str, str | Secret] = {"HOME": str(self.home)}
        match name:
            case "claude":
                env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": Secret(KEY)}
                env |= {"CLAUDE_CODE_MAX_RETRIES": "0"}
                env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
            case "codex":
                env |= {"CODEX_HOME": str(self.home), "LOOPBACK_KEY": Secret(KEY)}
                config = CODEX.format(url=url)
                (self.home / "config.toml").write_text(config, encoding="utf-8")
            case _:
                env |= {"HERMES_HOME": str(self.home)}
                config = HERMES.format(url=url, key=KEY)
                (self.home / "config.yaml").write_text(config, encoding="utf-8")
        agent = create_cli_agent(
            name,
            executable=str(FOLDER / "bin" / name),
            model="fake-1" if name == "claude" else "",
            env=env,
            timeout_s=timeout_s,
        )
        llm = ScriptedLlm([call("resolve", value=["made.txt"])])
        return create_workflow(DEFINITION, AdapterBinding(agent_to_adapter(agent, llm)))


ROLE = RoleDefinition(
    name="maker",
    description="Makes files.",
    system_prompt="Make the file; tell which you made.",
    schema=list[str],
)
DEFINITION = WorkflowDefinition(
    description="Making.",
    table={START: ROLE, ROLE: END},
)
CODEX = """
model = "fake-1"
model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
env_key = "LOOPBACK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
HERMES = """
model: {{default: fake-1, provider: custom, base_url: "{url}/v1", api_key: {key}}}
"""


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with (
        tempfile.TemporaryDirectory(dir=FOLDER) as home,  # codex can't have it under /tmp
        model_server(command="echo made > made.txt", says="I made made.txt.") as model,
    ):
        yield Setting(home=Path(home), workspace=workspace, model=model)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with open_store(tmp_path / "store.sqlite3") as store:
        yield Engine(store, locks=tmp_path / "locks")


@every_agent
async def test_a_role_changes_files_and_gives_a_typed_value(
    name: str, setting: Setting, engine: Engine
) -> None:
    result = await engine.start(setting.agent(name), "Make it.", workspace=setting.workspace)

    assert result.value == ["made.txt"], result.summary
    assert (setting.workspace / "made.txt").read_text() == "made\n"
    (step,) = result.steps
    assert step.content == "I made made.txt."
    used = (step.usage.input_tokens, step.usage.cached_tokens, step.usage.output_tokens)
    assert used == (2000 + 10, 800, 20 + 5)  # what the server said twice, and the extract
    assert step.usage.unknown_calls == 0
    assert setting.model.keys == {KEY}
    assert "Make the file; tell which you made.\\n\\n## Task" in str(setting.model.requests[0])
    assert (await engine.replay(setting.agent(name), result.thread_id)).steps == 1


@every_agent
async def test_a_refusal_of_the_provider_is_told_as_such_and_without_the_key(
    name: str, setting: Setting, engine: Engine
) -> None:
    setting.model.status = 401

    result = await engine.start(setting.agent(name), "Make it.", workspace=setting.workspace)

    assert result.state == "failed"
    assert isinstance(result.error, AgentFailed)
    assert result.summary.startswith(f"{name} failed (its provider answered 401")
    assert "no, says the scripted model" in result.summary
    assert KEY not in result.summary
    assert result.error.run is not None
    assert result.error.run.usage == Usage(
        calls=1,
        unknown_calls=0 if name == "claude" else 1,
        cost_micros=0 if name == "claude" else None,
    )


@every_agent
async def test_what_was_stopped_in_the_middle_goes_on_when_a_person_says_so(
    name: str, setting: Setting, engine: Engine
) -> None:
    setting.model.command = f"touch at_work; sleep 1000.{os.getpid()}"
    workflow = setting.agent(name)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start, engine, workflow, setting.workspace)
        with anyio.fail_after(100):
            while not (setting.workspace / "at_work").exists():  # noqa: ASYNC110 - a process
                await anyio.sleep(0.05)
            await anyio.sleep(3)  # claude writes its session down a moment later
            (running_thread,) = await list_threads(engine.store)
            await engine.pause(running_thread)
    (thread_id,) = await list_threads(engine.store)
    assert not await running(f"sleep 1000.{os.getpid()}")

    asked = await engine.resume(workflow, thread_id)
    how = "begin again, in a new session?" if name == "hermes" else "go on in its session "
    assert (asked.state, asked.cause) == ("suspended", "question")
    assert how in asked.summary
    await engine.answer(thread_id, None, Answer(approved=True))
    setting.model.command = "echo made > made.txt"
    done = await engine.resume(workflow, thread_id)

    assert done.state == "completed", done.summary
    assert (setting.workspace / "made.txt").exists()
    tasks_told = str(setting.model.requests[-1]).count("Make the file; tell which you made.")
    assert tasks_told == (1 if name == "hermes" else 2)  # it remembers what it was told before


async def start(engine: Engine, workflow: Workflow, workspace: Path) -> None:
    await engine.start(workflow, "Make it.", workspace=workspace)


async def running(command: str) -> bool:
    listed = await anyio.run_process(["ps", "-A", "-o", "stat=,args="])
    lines = listed.stdout.decode().splitlines()
    return any(command in line and not line.startswith("Z") for line in lines)


async def test_codex_which_waits_for_ever_for_a_provider_that_is_not_there_is_stopped(
    setting: Setting, engine: Engine
) -> None:
    workflow = setting.agent("codex", url="http://127.0.0.1:9", timeout_s=6)

    result = await engine.start(workflow, "Make it.", workspace=setting.workspace)

    assert isinstance(result.error, AgentTimedOut), result.summary
