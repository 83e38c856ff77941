"""What is known of a server, and what of it is never shown."""

from pathlib import Path
from typing import Any

import pytest

from workflow_agent_react import McpError, McpServer
from workflow_agent_react.tools.mcp._server import access_to
from workflow_reactor import Secret


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "either `command` or `url`"),
        ({"command": ["x"], "url": "http://h/"}, "either `command` or `url`"),
        ({"command": "npx server"}, "a list of words"),
        ({"url": "localhost:8000/mcp"}, "should be an http"),
        ({"url": "http://h:port/"}, "should be an http"),
        ({"url": "http://h/", "env": {"A": "b"}}, "are for a command"),
        ({"command": ["x"], "headers": {"A": "b"}}, "are for a URL"),
        ({"command": ["x"], "timeout_s": 0}, "`timeout_s` must be more than 0"),
        ({"command": ["x"], "start_timeout_s": -1.0}, "`start_timeout_s` must be more than 0"),
    ],
)
def test_settings_that_can_not_be_right_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(McpError, match=reason):
        McpServer(**fields)


KEY = "k3y-which-nobody-may-see"


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ["server", "--api-key", KEY]},
        {"command": ["server", f"--api-key={KEY}"]},
        {"command": ["server", "-token", KEY]},
        {"command": ["docker", "run", "-e", f"MY_SECRET={KEY}", "image"]},
        {"command": ["server", Secret(KEY)]},
        {"command": ["server", "--header", f"Authorization: Bearer {KEY}"]},
        {"command": ["proxy", f"https://h/mcp?key={KEY}"]},
        {"command": ["proxy", f"https://u:{KEY}@h/mcp"]},
        {"command": ["server"], "env": {"A_TOKEN": KEY}},
        {"command": ["server"], "env": {"A": Secret(KEY)}},
        {"url": f"https://h/mcp?key={KEY}"},
        {"url": f"https://h/mcp?{KEY}"},
        {"url": f"https://u:{KEY}@h/mcp"},
        {"url": "https://h/mcp", "headers": {"X": KEY}},
        {"url": "https://h/mcp", "headers": {"Authorization": f"Bearer {KEY}"}},
    ],
)
def test_a_secret_is_not_shown_wherever_it_stands(fields: dict[str, Any]) -> None:
    server = McpServer(**fields)
    access = access_to(server)
    shown = f"{server!r}{server.place}{server.__rich_repr__()}{McpError(server.place, 'x')}{access}"
    assert KEY not in shown
    assert KEY not in access.hide(f"the key {KEY} is wrong")
    assert KEY in f"{access.command}{access.env}{access.url}{access.headers}"


def test_what_is_no_secret_is_shown() -> None:
    server = McpServer(command=["npx", "-y", "server", "--port", "8080", "--root=/w"])
    assert server.place == "npx -y server --port 8080 --root=/w"
    assert repr(McpServer(url="http://h:1/mcp", name="n", folder=None)) == (
        "McpServer(url='http://h:1/mcp', name='n')"
    )
    assert repr(McpServer(command=["x"], env={"A": "b"}, folder=Path("/w"))) == (
        "McpServer(command=['x'], env={'A': '…'}, folder=PosixPath('/w'))"
    )


def test_references_are_followed_when_a_server_is_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_HOST", "h")
    monkeypatch.setenv("MY_TOKEN", "t0ken-1")
    server = McpServer(
        url="https://${MY_HOST}/mcp?key=${MY_TOKEN}",
        headers={"A": "Bearer ${MY_TOKEN}", "B": Secret(lambda: "found-1")},
    )
    access = access_to(server)
    assert access.url == "https://h/mcp?key=t0ken-1"
    assert access.headers == {"A": "Bearer t0ken-1", "B": "found-1"}
    assert access.hide("Bearer t0ken-1, found-1") == "…, …"
    script = McpServer(command=["sh", "-c", "echo ${HOME}"])
    assert access_to(script).command == ("sh", "-c", "echo ${HOME}")


def test_a_reference_that_leads_nowhere_is_named() -> None:
    def lost() -> str:
        raise LookupError(KEY)

    with pytest.raises(McpError, match=r"`headers\.A` refers to .* NOT_SET_ANYWHERE"):
        access_to(McpServer(url="https://h/", headers={"A": "${NOT_SET_ANYWHERE}"}))
    with pytest.raises(McpError, match=r"the secret of `headers\.A` can't be found") as caught:
        access_to(McpServer(url="https://h/", headers={"A": Secret(lost)}))
    assert KEY not in str(caught.value)
    with pytest.raises(McpError, match=r"`headers\.A` has characters") as caught:
        access_to(McpServer(url="https://h/", headers={"A": f"{KEY}\n"}))
    assert KEY not in str(caught.value)
