"""One-shot structured adapter: one chat, one typed value."""

from workflow_agent_llm._adapter import (
    create_llm_adapter,
)

__all__ = [
    "create_llm_adapter",
]
