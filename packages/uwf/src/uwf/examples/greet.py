"""The smallest workflow: one role, one typed value.

uwf run greet.py "Greet Ada in French."
"""

from typing import Annotated

from pydantic import BaseModel, Field

from uwf import (END, START, AdapterBinding, RoleDefinition, WorkflowDefinition,
                 create_llm_adapter, create_workflow)


class Greeting(BaseModel):
    """What the greeter gives."""

    greeting: Annotated[str, Field(min_length=1, max_length=300, description="one sentence")]
    language: Annotated[str, Field(max_length=40, description="the language's English name")]


greeter = RoleDefinition(
    name="greeter",
    system_prompt="You greet people: one friendly sentence in the language asked for.",
    schema=Greeting,
)

run = create_workflow(
    WorkflowDefinition(
        description="Greet somebody in a language",
        table={START: greeter, greeter: END},
        result=greeter,
    ),
    AdapterBinding(create_llm_adapter("default")),
)
