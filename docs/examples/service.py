"""A service that writes articles: any number of processes over one store.

uvicorn service:app --port 8001 --timeout-graceful-shutdown 5
"""

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated

import anyio
import msgspec
from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from uwf import (Answer, Engine, EngineNotRunning, KeyConflict, QuestionError, ThreadBusy, ThreadId,
                 ThreadNotFound, ThreadNotResumable, WorkflowError, open_store, read_thread)
from uwf.examples.article import run  # any workflow

DATA = Path(os.environ.get("SERVICE_DATA", "data"))
LOOK_AGAIN_S = float(os.environ.get("SERVICE_LOOK_AGAIN_S", "5"))
STATUS = {ThreadNotFound: 404, KeyConflict: 409, QuestionError: 409, EngineNotRunning: 503}
log = logging.getLogger("uvicorn.error")


async def go_on(engine: Engine) -> None:
    """Take up what closed or dead processes left, and what has its answer."""
    recovery = await engine.recover({"article": run})
    for left in recovery.left:
        log.warning("thread %s is left: %s", left.thread_id, left.reason)
    for thread in await engine.list_threads(state="suspended", workflow="article"):
        if thread.cause == "question" and not await engine.questions(thread.thread_id):
            with suppress(ThreadBusy, ThreadNotResumable):  # another process was quicker
                await engine.resume_in_background(run, thread.thread_id)


async def keep_going_on(engine: Engine) -> None:
    """Look after the other processes, too."""
    while True:
        try:
            await go_on(engine)
        except WorkflowError:
            log.exception("can't look for threads; trying again")
        await anyio.sleep(LOOK_AGAIN_S)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[dict[str, Engine]]:
    """Run threads from the start of the process until it is told to stop."""
    async with (
        open_store(DATA / "store.sqlite3") as store,
        Engine(store, locks=DATA / "locks").running(wait_s=1) as engine,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(keep_going_on, engine)
        yield {"engine": engine}
        tasks.cancel_scope.cancel()


app = FastAPI(lifespan=lifespan)


async def engine_of(request: Request) -> Engine:
    return request.state.engine


Running = Annotated[Engine, Depends(engine_of)]


@app.exception_handler(WorkflowError)
async def refuse(request: Request, error: WorkflowError) -> JSONResponse:
    """Say what a caller can do something about. The rest is a fault of the service."""
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    return JSONResponse({"detail": str(error)}, status)


class Order(BaseModel):
    topic: str


class Article(BaseModel):
    id: str
    state: str
    said: str
    """What it came to, or why it waits or failed."""
    text: str | None = None
    questions: dict[str, str] = {}
    """By their keys: what a person is shown."""


class Verdict(BaseModel):
    approved: bool
    text: str = ""


@app.post("/articles", status_code=202)
async def order(
    order: Order, engine: Running, idempotency_key: Annotated[str, Header(pattern="^[!-~]{1,99}$")]
) -> dict[str, object]:
    key = idempotency_key
    handle = await engine.submit(run, order.topic, key=key, name="article", tags=["web"])
    return {"id": handle.id, "is_new": handle.is_new}


@app.get("/articles")
async def list_articles(engine: Running) -> list[Article]:
    threads = await engine.list_threads(workflow="article", tag="web", limit=100)
    return [Article(id=each.thread_id, state=each.state, said=each.summary) for each in threads]


@app.get("/articles/{id}")
async def show(id: ThreadId, engine: Running) -> Article:
    thread = await read_thread(engine.store, id)
    questions = {key: asked.details for key, asked in (await engine.questions(id)).items()}
    drafts = [each.value.decode() for each in thread.steps if each.record.role == "writer"]
    return Article(
        id=id, state=thread.status.state, said=thread.status.summary,
        text=str(drafts[-1]) if drafts else None, questions=questions,
    )


@app.get("/articles/{id}/events")
async def events(id: ThreadId, engine: Running) -> StreamingResponse:
    handle = await engine.handle(run, id)

    async def lines() -> AsyncGenerator[str]:
        async for event in handle:
            yield f"data: {msgspec.json.encode(event).decode()}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


@app.post("/articles/{id}/answer", status_code=202)
async def answer(id: ThreadId, verdict: Verdict, engine: Running) -> None:
    await engine.answer(id, None, Answer(approved=verdict.approved, text=verdict.text))
    await go_on(engine)
