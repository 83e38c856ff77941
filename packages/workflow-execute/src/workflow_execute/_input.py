"""What a thread is begun with: a value of the workflow's input type, kept and shown as text."""

from __future__ import annotations

from typing import Any, cast

from typing_extensions import TypeVar

from workflow_execute._errors import InputError
from workflow_execute._workflow import AnyWorkflow, Workflow
from workflow_protocol import SchemaMismatch, schema_of, stored_form

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
            return value
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


def read_input(workflow: Workflow[In, Out], text: str) -> In:
    """Read an input that a person wrote: text as it is, anything else as JSON.

    Raises:
        InputError: it is no JSON, or not of the workflow's input type: says which field.
    """
    type_ = workflow.definition.input
    if type_ is str:
        return cast("In", text)
    schema = schema_of(type_)
    try:
        return schema.validate_json(text)
    except SchemaMismatch as error:
        raise InputError(f"the input does not fit {schema.title}: {error}") from error


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
