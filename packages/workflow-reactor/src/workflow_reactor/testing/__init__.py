"""Models for tests: scripted in process, and a loopback server that speaks the protocol.

    llm = ScriptedLlm([call("read_file", path="a.txt"), call("resolve", answer=42)])

Both take the same script: a list of replies, one for each request. A reply is what `say` and
`call` make, a raw body (`bytes`), or a function of the request that returns either. Running out
of replies is an error, so that a loop that asks too often shows. To the server a `Wire` says what
goes over the socket instead: another status, half a body, a reset.
"""

from workflow_reactor.testing._history import history_faults
from workflow_reactor.testing._loopback import LoopbackServer, Wire, http, loopback_server
from workflow_reactor.testing._script import (
    Reply,
    Request,
    ScriptExhausted,
    call,
    function,
    say,
    turn,
)
from workflow_reactor.testing._scripted import ScriptedLlm

__all__ = [
    "LoopbackServer",
    "Reply",
    "Request",
    "ScriptExhausted",
    "ScriptedLlm",
    "Wire",
    "call",
    "function",
    "history_faults",
    "http",
    "loopback_server",
    "say",
    "turn",
]
