"""What adapters share: the thread as a prompt."""

from workflow_util_agent._thread_input import (
    DEFAULT_QUOTA_CHARS,
    build_thread_input,
)

__all__ = [
    "DEFAULT_QUOTA_CHARS",
    "build_thread_input",
]
