"""A thread told as a transcript: who said, called, decided and waited for what.

thread = await read_thread(store, thread_id)
transcript = build_transcript(thread, await read_records(store, thread))
"""

from workflow_execute.transcript._build import TurnAttempts, build_transcript, read_records
from workflow_execute.transcript._compare import (
    RecordedThread,
    RequestDifference,
    RequestPlace,
    StepPair,
    StepSide,
    ThreadComparison,
    add_request_bytes,
    compare_threads,
)
from workflow_execute.transcript._json_diff import ValueDifference
from workflow_execute.transcript._model import (
    Asked,
    Attempt,
    Call,
    CallState,
    ChildStart,
    Decided,
    LostCall,
    Part,
    Recorded,
    Round,
    RoundState,
    Transcript,
    Turn,
)
from workflow_execute.transcript._questions import pending_questions
from workflow_execute.transcript._replies import WrittenCallReader
from workflow_execute.transcript._told import add_told

__all__ = [
    "Asked",
    "Attempt",
    "Call",
    "CallState",
    "ChildStart",
    "Decided",
    "LostCall",
    "Part",
    "Recorded",
    "RecordedThread",
    "RequestDifference",
    "RequestPlace",
    "Round",
    "RoundState",
    "StepPair",
    "StepSide",
    "ThreadComparison",
    "Transcript",
    "Turn",
    "TurnAttempts",
    "ValueDifference",
    "WrittenCallReader",
    "add_request_bytes",
    "add_told",
    "build_transcript",
    "compare_threads",
    "pending_questions",
    "read_records",
]
