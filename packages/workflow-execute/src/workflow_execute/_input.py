"""What a thread is begun with: a value of the workflow's input type, kept and shown as text."""

from __future__ import annotations

from typing import Any, cast

from msgspec.json import decode, encode
from typing_extensions import TypeVar

from workflow_execute._differences import in_any_order
from workflow_execute._errors import InputError
from workflow_execute._workflow import AnyWorkflow, Workflow
from workflow_protocol import SchemaMismatch, SchemaTypeError, schema_of, stored_form, text_fault

In = TypeVar("In")
Out = TypeVar("Out")


def input_text(workflow: AnyWorkflow, value: object) -> str:
    """The text that is stored of an input: itself, or the JSON that it is read back from.

    Raises:
        InputError: it is not of the workflow's input type.
    """
    type_ = workflow.definition.input
    if type_ is str:
        if isinstance(value, str):
            return checked_text(value)
        kind = type(value).__name__
        raise InputError(f"the input is of type {kind}; the workflow takes text")
    schema = schema_of(type_)
    try:
        return stored_form(schema, value, None)[0].decode()
    except SchemaMismatch as error:
        raise InputError(
            f"the input is of type {type(value).__name__}, which does not fit "
            f"{schema.title}: {error}"
        ) from error


def checked_text(text: str, what: str = "the input") -> str:
    """A text that can be stored; `what` names it.

    Raises:
        InputError: it is not UTF-8.
    """
    if words := text_fault(text):
        raise InputError(f"{what} {words}; give text")
    return text


def compared_input(workflow: AnyWorkflow, text: str) -> bytes:
    """What tells an input from another one, whatever order this process gives the parts of sets."""
    type_ = workflow.definition.input
    if type_ is not str and b'"uniqueItems":true' in encode(schema_of(type_).json_schema()):
        text = in_any_order(decode(text))
    return text.encode()


def plain_text(value: object) -> str:
    """The text of an input for a workflow whose type isn't known here: by the value's own type.

    Raises:
        InputError: the value has no JSON, or is no UTF-8.
    """
    if isinstance(value, str):
        return checked_text(value)
    try:
        return stored_form(schema_of(type(value)), value, None)[0].decode()
    except (SchemaMismatch, SchemaTypeError) as error:
        raise InputError(
            f"the input of type {type(value).__name__} has no JSON: {error}"
        ) from error


def read_input(workflow: Workflow[In, Out], text: str) -> In:
    """Read an input that a person wrote: text as it is, anything else as JSON.

    Raises:
        InputError: it is not UTF-8, no JSON, or not of the workflow's input type: says which field.
    """
    type_ = workflow.definition.input
    if type_ is str:
        return cast("In", checked_text(text))
    schema = schema_of(type_)
    try:
        return schema.validate_json(text)
    except SchemaMismatch as error:
        raise InputError(f"the input does not fit {schema.title}: {error}") from error


def forked_input(workflow: AnyWorkflow, text: str | None, before: str) -> str | None:
    """What a fork is begun with, if it is another input, as it is stored.

    Raises:
        InputError: what it is begun with is not of the workflow's input type.
    """
    if text is None:
        restored_input(workflow, before)
        return None
    return input_text(workflow, read_input(workflow, text))


def restored_input(workflow: AnyWorkflow, text: str) -> Any:
    """The input of a stored thread.

    Raises:
        InputError: it is not of the workflow's input type.
    """
    if workflow.definition.input is str:
        return text
    try:
        return schema_of(workflow.definition.input).restore(text.encode())
    except SchemaMismatch as error:
        title = schema_of(workflow.definition.input).title
        raise InputError(f"its input does not fit {title}: {error}") from error
