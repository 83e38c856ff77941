"""What adapters share: the thread as a prompt, agents as adapters, text for a model."""

from workflow_util_agent._agent_adapter import (
    agent_to_adapter,
)
from workflow_util_agent._terminal import (
    CONTROL_CODE,
    terminal_text,
)
from workflow_util_agent._thread_input import (
    DEFAULT_QUOTA_CHARS,
    build_thread_input,
)

__all__ = [
    "CONTROL_CODE",
    "DEFAULT_QUOTA_CHARS",
    "agent_to_adapter",
    "build_thread_input",
    "terminal_text",
]
