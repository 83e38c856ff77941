"""The scripted model that real agents are tested with."""

from typing import Any

import httpx
import pytest

from workflow_agent_cli.testing import model_server

TOOLS: dict[str, Any] = {
    "/v1/chat/completions": {"type": "function", "function": {"name": "terminal"}},
    "/v1/responses": {"type": "function", "name": "exec_command"},
    "/v1/messages": {"name": "Bash"},
}
RESULTS: dict[str, Any] = {
    "/v1/chat/completions": {"messages": [{"role": "tool", "content": "ok"}]},
    "/v1/responses": {"input": [{"type": "function_call_output", "output": "ok"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
}


@pytest.mark.parametrize("path", TOOLS)
def test_it_has_an_agent_run_one_command_and_then_speaks(path: str) -> None:
    with model_server(command="make it", says="It is made.") as server:
        asked = {"tools": [TOOLS[path]]}
        headers = {"authorization": "Bearer k1"}

        first = httpx.post(server.url + path, json=asked, headers=headers)
        second = httpx.post(server.url + path, json={**asked, **RESULTS[path]}, headers=headers)

    assert "make it" in first.text
    assert "It is made." not in first.text
    assert "It is made." in second.text
    assert "make it" not in second.text
    assert len(server.requests) == 2
    assert server.keys == {"k1"}


def test_without_a_shell_among_the_tools_it_only_speaks() -> None:
    with model_server(command="make it", says="It is made.") as server:
        reply = httpx.post(server.url + "/v1/messages?beta=true", json={"messages": []})

    assert "It is made." in reply.text
    assert server.requests == []


def test_it_refuses_and_knows_its_paths() -> None:
    with model_server(command="", says="") as server:
        assert httpx.get(server.url + "/v1/models").json()["data"][0]["id"] == "fake-1"
        assert httpx.head(server.url).status_code == 200
        assert httpx.post(server.url + "/v1/other", json={}).status_code == 404
        server.status = 429
        refused = httpx.post(server.url + "/v1/messages", json={}, headers={"x-api-key": "k2"})

    assert refused.status_code == 429
    assert "no, says the scripted model (k2)" in refused.text
