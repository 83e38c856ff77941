"""What stands in for the world in tests: workflows of plain functions, a person, a clock.

Models are in `workflow_reactor.testing`, guards in `workflow_agent_react.testing`.
"""

from workflow_execute.testing._clock import FakeClock
from workflow_execute.testing._person import ScriptedPerson
from workflow_execute.testing._workflows import Turn, adapter_of, in_turn

__all__ = ["FakeClock", "ScriptedPerson", "Turn", "adapter_of", "in_turn"]
