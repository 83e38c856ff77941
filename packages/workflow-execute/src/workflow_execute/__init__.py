"""create_workflow and the engine that runs threads on a durable store."""

from workflow_execute._budget import (
    ALLOWANCE,
    Budget,
    Charge,
    Limits,
    Price,
)
from workflow_execute._differences import (
    Difference,
    compare,
)
from workflow_execute._errors import (
    AlreadyAnswered,
    ChildCancelled,
    ChildFailed,
    ChildGaveUp,
    ChildSuspended,
    EngineNotRunning,
    ForkError,
    InputError,
    JournalMismatch,
    KeyConflict,
    LimitReached,
    NotRecorded,
    QuestionError,
    RoleValueError,
    SecretInThread,
    ThreadBusy,
    ThreadExists,
    ThreadFileError,
    ThreadNotCompleted,
    ThreadNotDeletable,
    ThreadNotExportable,
    ThreadNotFound,
    ThreadNotResumable,
    WorkflowNotFound,
)
from workflow_execute._function import FunctionAdapter, function_adapter
from workflow_execute._input import read_input
from workflow_execute._records import (
    SUPERVISOR_KEYS,
    BranchRecord,
    ShownState,
    StartRecord,
    StateRecord,
    StatusRecord,
    ThreadState,
    TurnRecord,
)
from workflow_execute._result import (
    ThreadResult,
)
from workflow_execute._supervisor import Decision, SupervisorFn, create_supervisor
from workflow_execute._workflow import (
    AnyWorkflow,
    ChildTask,
    Workflow,
    create_workflow,
)
from workflow_execute.children._adapter import (
    WorkflowAdapter,
    child_prompt,
    workflow_adapter,
    workflow_of_child,
)
from workflow_execute.children._child import (
    ChildHost,
    ChildRecord,
    ChildResult,
    run_child,
    run_children,
)
from workflow_execute.children._registry import WorkflowRegistry, find_bundle
from workflow_execute.engine._engine import (
    Engine,
)
from workflow_execute.engine._feed import EventsMissed
from workflow_execute.engine._handle import ThreadHandle
from workflow_execute.engine._recover import LeftThread, Recovery
from workflow_execute.engine._run_workflow import run_sync, run_workflow
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.journal._facts import read_facts, write_facts
from workflow_execute.journal._questions import Asker, Asking
from workflow_execute.owners._now import Doing, ThreadNow, read_now
from workflow_execute.run._services import Observer, TracingObserver
from workflow_execute.threads._files import FilesOfStep, files_after, files_of_step, newest_version
from workflow_execute.threads._read import (
    StoredStep,
    StoredThread,
    current_attempt,
    find_thread,
    list_threads,
    read_attempts,
    read_thread,
    read_turn,
)
from workflow_execute.threads._replay import Replay
from workflow_execute.threads._replay_journal import ReplayedRequest
from workflow_execute.threads._summaries import (
    SummaryFault,
    check_summaries,
    read_summaries,
    repair_summaries,
    thread_entries,
)
from workflow_execute.threads._summary import ThreadSummary, check_tags
from workflow_execute.threads._tree import ThreadTree, children_of_thread, read_lineage, read_tree

TYPE_CHECKING = False  # checkers take it as true; importing `typing` takes longer
if TYPE_CHECKING:
    from workflow_execute.exchange._export import ThreadFileReport, export_thread
    from workflow_execute.exchange._file import ThreadFile, open_thread_file
    from workflow_execute.exchange._import import ImportReport, import_thread

__all__ = [
    "ALLOWANCE",
    "SUPERVISOR_KEYS",
    "AlreadyAnswered",
    "AnyWorkflow",
    "Asker",
    "Asking",
    "BranchRecord",
    "Budget",
    "Charge",
    "ChildCancelled",
    "ChildFailed",
    "ChildGaveUp",
    "ChildHost",
    "ChildRecord",
    "ChildResult",
    "ChildSuspended",
    "ChildTask",
    "Decision",
    "Difference",
    "Doing",
    "Engine",
    "EngineNotRunning",
    "EventsMissed",
    "FilesOfStep",
    "ForkError",
    "FunctionAdapter",
    "ImportReport",
    "InputError",
    "JournalEntry",
    "JournalMismatch",
    "KeyConflict",
    "LeftThread",
    "LimitReached",
    "Limits",
    "NotRecorded",
    "Observer",
    "Price",
    "QuestionError",
    "Recovery",
    "Replay",
    "ReplayedRequest",
    "RoleValueError",
    "SecretInThread",
    "ShownState",
    "StartRecord",
    "StateRecord",
    "StatusRecord",
    "StoredStep",
    "StoredThread",
    "SummaryFault",
    "SupervisorFn",
    "ThreadBusy",
    "ThreadExists",
    "ThreadFile",
    "ThreadFileError",
    "ThreadFileReport",
    "ThreadHandle",
    "ThreadNotCompleted",
    "ThreadNotDeletable",
    "ThreadNotExportable",
    "ThreadNotFound",
    "ThreadNotResumable",
    "ThreadNow",
    "ThreadResult",
    "ThreadState",
    "ThreadSummary",
    "ThreadTree",
    "TracingObserver",
    "TurnRecord",
    "Workflow",
    "WorkflowAdapter",
    "WorkflowNotFound",
    "WorkflowRegistry",
    "check_summaries",
    "check_tags",
    "child_prompt",
    "children_of_thread",
    "compare",
    "create_supervisor",
    "create_workflow",
    "current_attempt",
    "export_thread",
    "files_after",
    "files_of_step",
    "find_bundle",
    "find_thread",
    "function_adapter",
    "import_thread",
    "list_threads",
    "newest_version",
    "open_thread_file",
    "read_attempts",
    "read_facts",
    "read_input",
    "read_lineage",
    "read_now",
    "read_summaries",
    "read_thread",
    "read_tree",
    "read_turn",
    "repair_summaries",
    "run_child",
    "run_children",
    "run_sync",
    "run_workflow",
    "thread_entries",
    "workflow_adapter",
    "workflow_of_child",
    "write_facts",
]

_LATE = {
    "_export": ("ThreadFileReport", "export_thread"),
    "_file": ("ThreadFile", "open_thread_file"),
    "_import": ("ImportReport", "import_thread"),
}
"""Thread files: what few runs need takes some milliseconds, so it is imported when asked for."""


def __getattr__(name: str) -> object:
    for module, names in _LATE.items():
        if name in names:
            from importlib import import_module

            found = getattr(import_module(f"workflow_execute.exchange.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'workflow_execute' has no attribute {name!r}")
