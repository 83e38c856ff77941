"""Entry scripts, and what a scripted model says to them."""

from workflow_reactor.testing import say

GREETING = '{"greeting": "Bonjour, Ada !", "language": "French"}'


PROJECT = "# A project\n\nRun main.py; test with pytest.\n"


FACTS = {
    "language": "Python",
    "entry_point": "main.py",
    "test_command": "pytest",
    "evidence": ["README.md"],
}


APPROVED = say('{"approved": true, "reasons": []}')


ENTRY = """
from workflow_agent_llm import create_llm_adapter
from workflow_execute import create_workflow
from workflow_protocol import (
    END, START, AdapterBinding, RoleDefinition, WorkflowDefinition,
)

from words import PROMPT

role = RoleDefinition(name="greeter", system_prompt=PROMPT, schema=str)
run = create_workflow(
    WorkflowDefinition(
        description="greet",
        table={START: role, role: END},
    ),
    AdapterBinding(create_llm_adapter("default")),
)
"""


ONE = """
from workflow_execute.testing import in_turn

async def turn(ctx):
    return 1

run = in_turn(turn)
"""


WAITING = """
import anyio
from workflow_execute.testing import in_turn

async def turn(ctx):
    (ctx.start.workspace / "begun").touch()
    with anyio.fail_after(20):
        while not (ctx.start.workspace / "go").exists():
            await anyio.sleep(0.02)
    return 1

run = in_turn(turn)
"""


AGENT = """
from workflow_agent_react import ReactAdapterConfig, create_react_adapter, workspace_tools
from workflow_execute import create_workflow
from workflow_protocol import (
    END, START, AdapterBinding, RoleDefinition, WorkflowDefinition,
)

role = RoleDefinition(name="agent", system_prompt="PROMPT", schema=str)
last = RoleDefinition(name="last", system_prompt="Sum up.", schema=str)
run = create_workflow(
    WorkflowDefinition(
        description="work",
        table={START: role, role: last, last: END},
    ),
    AdapterBinding(create_react_adapter(
        ReactAdapterConfig(
            llm="default", toolset=workspace_tools(sandbox="off"), dialect="native"
        )
    )),
)
"""


ASKING = """
import anyio
from workflow_execute.testing import in_turn
from workflow_protocol import Question

async def turn(ctx):
    said = {}
    async def ask(key):
        question = Question(text=f"May I {key}?", details=f"{key} --all")
        said[key] = await ctx.journal.ask(key, question)
    try:
        async with anyio.create_task_group() as tasks:
            for key in ("build", "push"):
                tasks.start_soon(ask, key)
    except ExceptionGroup as group:
        raise group.exceptions[0]
    return " ".join(f"{key}:{said[key].approved}:{said[key].text}" for key in sorted(said))

run = in_turn(turn, schema=str)
"""


NESTED = """
from workflow_execute import create_workflow, workflow_adapter
from workflow_execute.testing import adapter_of, in_turn
from workflow_protocol import (
    END, START, AdapterBinding, Question, RoleDefinition, WorkflowDefinition,
)

async def turn(ctx):
    return (await ctx.journal.ask("drop", Question(text="Drop the table?"))).text

role = RoleDefinition(name="developer", system_prompt="Develop.", schema=str)
run = create_workflow(
    WorkflowDefinition(
        description="nested",
        table={START: role, role: END},
    ),
    AdapterBinding(workflow_adapter("develop", in_turn(turn, schema=str))),
)
"""


AGENT_BELOW = f"""{AGENT}
from workflow_execute import workflow_adapter

agent = run
developer = RoleDefinition(name="developer", system_prompt="Develop.", schema=str)
run = create_workflow(
    WorkflowDefinition(
        description="an agent below",
        table={{START: developer, developer: END}},
    ),
    AdapterBinding(workflow_adapter("develop", agent)),
)
"""
