"""`create_llm_adapter`: one chat, one typed value, and one more try where the first misfits."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from typing_extensions import TypeForm

from workflow_protocol import AdapterFn, RoleFn, SchemaMismatch, ThreadContext
from workflow_reactor import (
    Conversation,
    LlmFn,
    LlmProvider,
    LlmSource,
    MaxRoundsExceeded,
    ModelSettings,
    RequestOptions,
    ResultSchema,
    ask_model,
    asks_strictly,
    model_of,
    open_llm,
    response_format,
    system,
    user,
)
from workflow_util_agent import build_thread_input

T = TypeVar("T")

_MAX_ROUNDS = 2  # the answer, and one repair


def create_llm_adapter(
    model: str | LlmProvider | LlmFn | LlmSource, *, settings: ModelSettings | None = None
) -> AdapterFn:
    """Give an adapter whose roles are one structured chat without tools.

    The schema goes into the prompt and, where the endpoint's profile has it, into
    `response_format`. The reply is read tolerantly: fences, reasoning blocks and words around the
    one JSON value are taken off. A reply that does not fit, or that broke off (at the output limit,
    by a content filter, a refusal, an error of the provider), is told what is wrong, once.

    Example:
        ```python
        critic = RoleDefinition(name="critic", system_prompt="Judge it in a sentence.", schema=str)
        careful = create_llm_adapter("default", settings=ModelSettings(temperature=0, seed=7))
        run = create_workflow(
            WorkflowDefinition(table={START: critic, critic: END}, result=critic),
            AdapterBinding(overrides={critic: careful}),
        )
        ```

    Args:
        model: a scene of `workflow.yaml` or `"provider/model"`, looked up when a role runs; or the
            model itself.
        settings: `temperature`, `top_p` and `seed` of these roles, before those of the model.

    The role raises `MaxRoundsExceeded` when the second reply doesn't fit either, and
    `ProviderError` when the model can't be asked.
    """
    source = model_of(model)

    def adapter(prompt: str, schema: TypeForm[T]) -> RoleFn[T]:
        result = ResultSchema(schema)

        async def role(ctx: ThreadContext) -> T:
            async with open_llm(source, ctx.journal.note, settings) as llm:
                return await _converse(ctx, llm, prompt, result)

        return role

    return adapter


async def _converse(ctx: ThreadContext, llm: LlmFn, prompt: str, result: ResultSchema[T]) -> T:
    options = RequestOptions(response_format=response_format(result.json_schema, llm.profile))
    strict = asks_strictly(options.response_format)
    messages = Conversation([system(_with_schema(prompt, result)), user(build_thread_input(ctx))])
    problem = ""
    for round in range(_MAX_ROUNDS):
        reply = await ask_model(
            llm, ctx.journal, messages, options=options, round=round, max_rounds=_MAX_ROUNDS
        )
        messages.append(reply.message)
        try:
            resolved = result.read_text(reply.text, strict=strict)
        except SchemaMismatch as misfit:
            problem = f"it {reply.broke_off}; {misfit}" if reply.broke_off else str(misfit)
        else:
            if not reply.broke_off:
                await ctx.journal.note(resolved)
                return resolved.value
            problem = f"it {reply.broke_off}"
        messages.append(
            user(f"Your reply is not valid:\n{problem}\nReply again with the JSON value alone.")
        )
    raise MaxRoundsExceeded(
        f"the model gave no valid reply, nor did its second try: {problem}",
        messages=messages,
        rounds=_MAX_ROUNDS,
    )


def _with_schema(prompt: str, result: ResultSchema[T]) -> str:
    schema = msgspec.json.encode(result.json_schema).decode()
    return (
        f"{prompt}\n\nReply with one JSON value and nothing else. "
        f"It must fit this JSON Schema:\n{schema}"
    )
