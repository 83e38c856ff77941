"""An agent's part of a turn: one run, and after an interruption another, if a person says so."""

from __future__ import annotations

import shlex
import time
from itertools import count

from workflow_agent_cli._call_events import CallEvents
from workflow_agent_cli._environment import Environment
from workflow_agent_cli._errors import AgentInterrupted, error_of
from workflow_agent_cli._record import AgentRun
from workflow_agent_cli._run import RunSpec, run_agent
from workflow_agent_cli._settings import Settings, find_executable
from workflow_protocol import (
    Effect,
    Metered,
    ModelFailed,
    ModelReplied,
    OutcomeUnknown,
    Question,
    RoundStarted,
    ThreadContext,
    Usage,
    error_message,
    error_type,
)

_AFTER_INTERRUPTION = (
    "Your work on the following was interrupted, and nobody knows how far it went. "
    "Check what is done already, then finish it.\n\n"
)


async def run_turn(settings: Settings, ctx: ThreadContext, prompt: str) -> str:
    """Run the agent until a run of it has an end that is known."""
    session, current_prompt = "", prompt
    for attempt in count():
        try:
            run = await _attempt(settings, ctx, current_prompt, session, attempt)
        except OutcomeUnknown:
            session = await _keep_session_id(ctx, attempt) or session
            current_prompt = await _ask_to_go_on(settings, ctx, prompt, session, attempt)
            session = session if settings.profile.session else ""
            continue
        if run.how != "done":
            raise error_of(settings.profile.name, run)
        return run.text
    raise AssertionError  # `count` has no end


async def _attempt(
    settings: Settings, ctx: ThreadContext, prompt: str, session: str, attempt: int
) -> AgentRun:
    journal, key = ctx.journal, f"run/{attempt}"

    def environment() -> Environment:  # only when it is run: a replay needs no keys
        return Environment(settings.inherited_names, settings.env)

    async def find() -> str:
        return await find_executable(settings, ctx.start.workspace, prompt, environment())

    executable = await journal.run(f"ready/{attempt}", find, type=str)
    session_is_kept = False

    async def on_session(session_id: str) -> None:
        nonlocal session_is_kept
        session_is_kept = True
        await _keep_session_id(ctx, attempt, session_id)

    async def perform() -> AgentRun:
        spec = RunSpec(
            profile=settings.profile,
            executable=executable,
            prompt=prompt,
            model=settings.model,
            session=session,
            more_arguments=settings.more_arguments,
            workspace=ctx.start.workspace,
            environment=environment(),
            timeout_s=settings.timeout_s,
            max_output_bytes=settings.max_output_bytes,
        )
        calls = CallEvents(key, attempt)
        return await run_agent(spec, note=journal.note, calls=calls, on_session=on_session)

    provider = settings.profile.name
    await journal.note(
        RoundStarted(
            key=key,
            round=attempt,
            max_rounds=attempt + 1,
            model=settings.priced_as,
            provider=provider,
        )
    )
    started_s = time.monotonic()
    try:
        run = await journal.run(
            key,
            perform,
            type=AgentRun,
            effect=Effect.UNSAFE,
            request=lambda: settings.request(prompt, session),
            metered=Metered(
                model=settings.priced_as,
                at_most=lambda: Usage(input_tokens=settings.at_most_tokens, calls=1),
                used=lambda run: run.usage,
            ),
        )
    except BaseException as error:
        await journal.note(
            ModelFailed(
                key=key,
                round=attempt,
                error=error_type(error),
                message=error_message(error),
                elapsed_ms=int((time.monotonic() - started_s) * 1000),
                model=settings.priced_as,
                provider=provider,
            )
        )
        raise
    elapsed_ms = int((time.monotonic() - started_s) * 1000)
    await journal.note(
        ModelReplied(
            key=key,
            round=attempt,
            model=settings.priced_as,
            provider=provider,
            finish="stop" if run.how == "done" else run.how,
            usage=run.usage,
            text=run.text[:200],
            elapsed_ms=elapsed_ms,
        )
    )
    if not session_is_kept:
        await _keep_session_id(ctx, attempt)
    return run


async def _keep_session_id(ctx: ThreadContext, attempt: int, session_id: str = "") -> str:
    """Keep the id of the agent's session as soon as it is known; give the one that was kept."""

    async def known_id() -> str:
        return session_id

    # Not a read, so that it is on disk before the agent goes on.
    return await ctx.journal.run(f"session/{attempt}", known_id, type=str, effect=Effect.REPEATABLE)


async def _ask_to_go_on(
    settings: Settings, ctx: ThreadContext, prompt: str, session: str, attempt: int
) -> str:
    """Let a person decide about a run of which nobody knows how far it went; give the prompt.

    Raises:
        Suspended: nobody has decided yet.
        AgentInterrupted: it is not to go on.
    """
    name = settings.profile.name
    resumable = session if settings.profile.session else ""
    how = f"go on in its session {resumable}" if resumable else "begin again, in a new session"
    question = Question(
        text=f"{name} was at work when its process died or was stopped, so nobody knows what it "
        f"did. Check what it changed in the workspace: may it {how}?",
        details=shlex.join(settings.recorded_command(resumable)),
    )
    answer = await ctx.journal.ask(f"interrupted/{attempt}", question)
    if not answer.approved:
        raise AgentInterrupted(
            f"{name} was interrupted, and a person decided not to go on: "
            f"{answer.text or 'declined'}; "
            "to begin the turn again, run `uwf thread resume --fresh`",
            agent=name,
        )
    advice = f"A person who looked says: {answer.text}\n\n" if answer.text else ""
    return f"{_AFTER_INTERRUPTION}{advice}{prompt}"
