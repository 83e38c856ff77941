"""Calls as guards judge them: with the arguments that the tool gets, encoded again.

A model writes `{"action": " Delete_All"}` and the function gets `"delete_all"`. So the arguments
are read first, by the tool's own types; guards and people see what was read; and the tool gets the
value that was read, which isn't read a second time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

from workflow_agent_react._errors import ToolError
from workflow_agent_react._exact_json import decode_exactly
from workflow_agent_react._lossless_json import LossyEncoding, encode_lossless
from workflow_protocol import SchemaMismatch, WorkflowError
from workflow_reactor import RESOLVE, ResultSchema, ToolCall, ToolDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCall(ToolCall):
    """A call whose arguments have been read; `arguments` says all that the tool gets."""

    value: Any
    """What was read of them; of `resolve` a `Resolved`."""
    encoded: str
    """The arguments that say so. A handler around the tool may have put others in since."""
    written: str
    """The arguments that it was read from."""

    @classmethod
    def of(cls, call: ToolCall, value: object, arguments: str) -> ReadCall:
        """The same call with what was read of it."""
        kept = {field.name: getattr(call, field.name) for field in fields(ToolCall)}
        kept |= {"arguments": arguments, "fault": ""}
        return cls(**kept, value=value, encoded=arguments, written=call.arguments)

    @property
    def is_read(self) -> bool:
        """Whether the value is still that of the arguments."""
        return self.arguments == self.encoded


class UnusableArguments(ToolError):
    """The arguments can't be used, or not be judged. The message is for the model."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message
        """For a person."""


def invalid_result_message(misfit: SchemaMismatch) -> str:
    """What the model is told of a `resolve` that is no result of the role."""
    return f"the result is not valid; mend it and resolve again:\n{misfit}"


class CallReader(msgspec.Struct, frozen=True):
    """Reads the calls of one turn of a role."""

    tools: Mapping[str, ToolDefinition]
    result: ResultSchema[Any]

    def read(self, call: ToolCall) -> ReadCall:
        """Read the arguments as the tool does, or those of `resolve` as the role's schema does.

        Raises:
            UnusableArguments: they don't fit, or JSON can't say what the tool would get.
        """
        try:
            if call.name == RESOLVE:
                resolved = self.result.read_call(call)
                arguments = _result_arguments(self.result, resolved.value)
                return ReadCall.of(call, resolved, arguments)
            return _read(self.tools[call.name], call)
        except LossyEncoding as error:
            raise UnusableArguments(
                f"the call was not run, because it can't be judged: {error}"
            ) from error
        except UnusableArguments:
            raise
        except SchemaMismatch as misfit:
            raise UnusableArguments(invalid_result_message(misfit), str(misfit)) from misfit
        # A validator may raise anything, as a tool may.
        except (Exception, SystemExit) as error:
            raise UnusableArguments(error_words(error)) from error

    def reread(self, call: ToolCall, arguments: str, *alternatives: str) -> ReadCall:
        """Read a call to the value that was decided on before: `arguments` said what it is.

        A validator may give another value for what it gave itself, so what was written is read
        first. A default such as a new UUID is another one each time, so it is taken from
        `arguments` then.

        Args:
            alternatives: what may have been written instead of the call's own arguments.

        Raises:
            UnusableArguments: none of them gives that value.
        """
        others = [replace(call, arguments=each, fault="") for each in alternatives]
        judged = replace(call, arguments=arguments, fault="", strict=False)
        for written in (call, *others, judged):
            try:
                read = self.read(written)
            except UnusableArguments:
                continue
            if read.arguments == arguments:
                return read
        raise UnusableArguments(
            "its arguments no longer give the value that was judged; make the call again"
        )


def call_digest(call: ToolCall) -> str:
    """Names a call's input, which is what was written: also where the tool gets something else."""
    return hashlib.sha256(f"{call.name}\0{call.arguments}".encode()).hexdigest()


def error_words(error: BaseException) -> str:
    """A `WorkflowError` is written for its reader; of others the type says half of it."""
    text = str(error)
    return text if isinstance(error, WorkflowError) and text else f"{type(error).__name__}: {text}"


def normal(arguments: str) -> str:
    """Arguments as guards see them and any reader does: without spacing and with no key twice.

    Numbers stay as they were written.
    """
    return msgspec.json.encode(decode_exactly(arguments)).decode()


def _read(tool: ToolDefinition, call: ToolCall) -> ReadCall:
    received = tool.receive(call)
    if not received.fault and tool.reader is not None:
        read = tool.reader(received)
        return read if isinstance(read, ReadCall) else ReadCall.of(read, None, read.arguments)
    received = tool.receive_strictly(received)
    if received.fault:
        raise UnusableArguments(received.fault)
    return ReadCall.of(received, None, normal(received.arguments))


def _result_arguments(result: ResultSchema[Any], value: object) -> str:
    """The call of `resolve` that gives this value."""
    encoded = encode_lossless(result.schema, value).decode()
    return f'{{"value":{encoded}}}' if result.wrapped else encoded
