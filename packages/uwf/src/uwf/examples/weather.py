"""One role with a tool of your own.

uwf run weather.py "What do I wear in Rome today?"
"""

from uwf import (END, START, AdapterBinding, Effect, ReactAdapterConfig, RoleDefinition,
                 WorkflowDefinition, create_react_adapter, create_workflow, tool)

REPORTS = {"Paris": "rain, 12 °C", "Rome": "sun, 24 °C"}


@tool(effect=Effect.READ, max_result_chars=200)
def weather(city: str) -> str:
    """Say what the weather in a city is now."""
    return REPORTS.get(city, f"there is no report for {city!r}")


adviser = RoleDefinition(name="adviser", system_prompt="Advise by the weather.", schema=str)
run = create_workflow(
    WorkflowDefinition(table={START: adviser, adviser: END}, result=adviser),
    AdapterBinding(create_react_adapter(ReactAdapterConfig(llm="default", toolset=weather))),
)
