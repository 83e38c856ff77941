"""`extract`: a typed value out of an agent's own words. The first use of the reactor."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol, TypeVar

from typing_extensions import TypeForm

from workflow_protocol import Effect, Hash, ThreadContext, WorkflowError
from workflow_reactor._llm import LlmFn, LlmSource
from workflow_reactor._messages import ToolCall
from workflow_reactor._reactor import ThreadReactorConfig, create_thread_reactor
from workflow_reactor.request._tools import ToolDefinition

if TYPE_CHECKING:
    from workflow_cas import Store

T = TypeVar("T")

_PROMPT = (
    "You turn what an agent wrote into structured data. Take each value from the text and from "
    "the objects that it names by their hash; invent nothing. Call `resolve` with the result."
)

_CAS_GET = ToolDefinition(
    name="cas_get",
    description="Read a stored object by its hash, or by the first digits of its hash.",
    parameters={
        "type": "object",
        "properties": {"hash": {"type": "string"}},
        "required": ["hash"],
        "additionalProperties": False,
    },
    effect=Effect.READ,
    validated=True,  # by the handler
)


class ExtractFn(Protocol):
    """Extracts values of schemas from text."""

    async def __call__(self, thread: ThreadContext, source: str | Hash, schema: TypeForm[T]) -> T:
        """Give the value of `schema` that a text states.

        Args:
            thread: whose journal records the calls; scope it if the turn makes calls of its own.
            source: the whole text, or the hash of a stored one.
            schema: the type to give.

        Raises:
            MaxRoundsExceeded: no valid value in all rounds; it carries the conversation.
            ProviderError: the model could not be asked.
            ObjectMissing: `source` is a hash, and nothing of it is stored.
        """
        ...


def create_extract(
    llm: LlmFn | LlmSource, cas: Store | None = None, *, max_rounds: int = 10
) -> ExtractFn:
    """Make an extract function of a model.

    Args:
        llm: the model.
        cas: where hashes are looked up; with it the model has the tool `cas_get`.
        max_rounds: model calls for one value.
    """

    async def cas_get(call: ToolCall, ctx: ThreadContext) -> str:
        del ctx
        digits = json.loads(call.arguments).get("hash")
        if cas is None or not isinstance(digits, str):
            raise WorkflowError("give the hash as a string")
        return (await cas.get(await cas.find(digits))).data.decode("utf-8", "replace")

    reactor = create_thread_reactor(
        ThreadReactorConfig(
            llm=llm,
            system_prompt=_PROMPT,
            tools=(_CAS_GET,) if cas is not None else (),
            tool_handler=cas_get,
            max_rounds=max_rounds,
        )
    )

    async def extract(thread: ThreadContext, source: str | Hash, schema: TypeForm[T]) -> T:
        text = await _text_of(source, cas)
        return await reactor(thread, text, schema)

    return extract


async def _text_of(source: str, cas: Store | None) -> str:
    is_hash = cas is not None and len(source) == 64 and set(source) <= set("0123456789abcdef")
    return (await cas.get(Hash(source))).text() if cas is not None and is_hash else source
