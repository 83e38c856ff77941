"""`extract`: a typed value out of an agent's own words. The first use of the reactor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from typing_extensions import TypeForm

from workflow_protocol import Hash, ThreadContext
from workflow_reactor._cas_get import CAS_GET, cas_get, cas_get_of
from workflow_reactor._llm import LlmFn, LlmSource
from workflow_reactor._reactor import ThreadReactorConfig, create_thread_reactor

if TYPE_CHECKING:
    from workflow_cas import Store

T = TypeVar("T")

_PROMPT = (
    "You turn what an agent wrote into structured data. Take each value from the text and from "
    "the objects that it names by their hash; invent nothing. Call `resolve` with the result."
)


class ExtractFn(Protocol):
    """Extracts values of schemas from text."""

    async def __call__(self, thread: ThreadContext, source: str | Hash, schema: TypeForm[T]) -> T:
        """Give the value of `schema` that a text states.

        Args:
            thread: whose journal records the calls; scope it if the turn makes calls of its own.
            source: the whole text, or with a `cas` also the hash of a stored one.
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
    """Make an extract function of a model, which reads stored objects with the tool `cas_get`.

    Args:
        llm: the model.
        cas: where hashes are looked up; the store of the thread's engine, if not given.
        max_rounds: model calls for one value.
    """
    reactor = create_thread_reactor(
        ThreadReactorConfig(
            llm=llm,
            system_prompt=_PROMPT,
            tools=(CAS_GET,),  # always, so that a replay, which has no engine, asks the same
            tool_handler=cas_get if cas is None else cas_get_of(cas),
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
