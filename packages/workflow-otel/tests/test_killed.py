"""A run that is killed, and the resume that goes on with it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from workflow_cas import open_store
from workflow_execute import list_threads, read_thread

SCRIPT = Path(__file__).with_name("killed_run.py")


async def test_a_resume_after_a_kill_links_to_it_and_counts_nothing_twice(tmp_path: Path) -> None:
    store, spans = tmp_path / "store.sqlite3", tmp_path / "spans.jsonl"
    killed = _run(store, spans, "kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    async with open_store(store, read_only=True) as opened:
        (thread_id,) = await list_threads(opened)
        kept = (await read_thread(opened, thread_id)).status.traceparent

    resumed = _run(store, spans, thread_id)

    assert resumed.stdout.split() == [b"completed", b"30"], resumed.stderr.decode()
    sent = [json.loads(line) for line in spans.read_text(encoding="utf-8").splitlines()]
    names = [each["name"] for each in sent]
    assert names.count("chat scripted") == 3
    assert names.count("execute_tool look") == 1
    assert names.count("execute_tool stay") == 1  # the one that was cut off has no end
    tokens = [each["attributes"].get("gen_ai.usage.input_tokens", 0) for each in sent]
    assert sum(tokens) == 30
    (run,) = [each for each in sent if each["name"] == "invoke_workflow workflow"]
    ((link,),) = [run["links"]]
    assert kept.startswith(f"00-{_id(link, 'trace_id')}-{_id(link, 'span_id')}-")
    first, last = sent[0]["context"], run["context"]
    assert link["context"]["trace_id"] == first["trace_id"] != last["trace_id"]
    (role,) = [each for each in sent if each["name"] == "invoke_agent reader"]
    told = [(each["name"], each["attributes"]["uwf.key"]) for each in role["events"]]
    assert told == [("uwf.recorded", key) for key in ("llm/0", "tool/0/0", "llm/1")]


def _run(store: Path, spans: Path, what: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, str(SCRIPT), str(store), str(spans), what]
    return subprocess.run(command, capture_output=True, check=False, timeout=30)


def _id(link: dict[str, Any], name: str) -> str:
    return str(link["context"][name]).removeprefix("0x")
