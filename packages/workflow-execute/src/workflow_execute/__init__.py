"""create_workflow and the engine that runs threads on a durable store."""

from workflow_execute._engine import (
    Engine,
    Limits,
    Observer,
    ThreadResult,
    run_workflow,
)
from workflow_execute._errors import (
    BindingError,
    JournalMismatch,
    RoleValueError,
    ThreadBusy,
    ThreadNotCompleted,
    ThreadNotFound,
    ThreadNotResumable,
)
from workflow_execute._records import (
    StartRecord,
    StateRecord,
    StatusRecord,
    ThreadState,
    TurnRecord,
)
from workflow_execute._threads import (
    StoredStep,
    StoredThread,
    find_thread,
    list_threads,
    read_thread,
    read_turn,
)
from workflow_execute._workflow import (
    Workflow,
    create_workflow,
)

__all__ = [
    "BindingError",
    "Engine",
    "JournalMismatch",
    "Limits",
    "Observer",
    "RoleValueError",
    "StartRecord",
    "StateRecord",
    "StatusRecord",
    "StoredStep",
    "StoredThread",
    "ThreadBusy",
    "ThreadNotCompleted",
    "ThreadNotFound",
    "ThreadNotResumable",
    "ThreadResult",
    "ThreadState",
    "TurnRecord",
    "Workflow",
    "create_workflow",
    "find_thread",
    "list_threads",
    "read_thread",
    "read_turn",
    "run_workflow",
]
