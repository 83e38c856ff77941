"""The template `solve_issue`, whole, with scripted developers: who is believed, and who is not."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from workflow_execute import ThreadResult, create_workflow, run_workflow
from workflow_templates import IssueNotRead, Solved, solve_issue
from workflow_templates.solving._issue import read_issue

from .developers import ISSUE, MENDED, NEW_TEST, Actions, developer, git, make_project, shell, write

MEND = [write("calc.py", MENDED)]
CHECK = ["python3", "-B", "-c", "import calc; assert calc.add(2, 3) == 5"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_project(tmp_path / "project")
    return tmp_path / "project"


async def run(
    project: Path, actions: Actions, reproduce: list[str], prompt: str = ISSUE
) -> ThreadResult[Solved]:
    model = developer(actions)
    template = solve_issue(llm=model, reproduce=reproduce, max_attempts=1)
    workflow = create_workflow(template.definition, template.binding)
    return await run_workflow(workflow, prompt, workspace=project)


async def test_it_is_fixed_when_the_reporters_command_succeeds_now(project: Path) -> None:
    result = await run(project, MEND, CHECK)

    solved = result.value
    assert (solved.outcome, result.return_code) == ("fixed", 0)
    assert solved.evidence == ["the reporter's command ended with 1 and now with 0"]
    assert solved.commit == git(project, "rev-parse", "HEAD")
    assert solved.branch == git(project, "branch", "--show-current")
    git(project, "switch", "-q", "main")
    git(project, "am", "-q", solved.patch)
    assert (project / "calc.py").read_text() == MENDED


@pytest.mark.slow
async def test_without_a_command_a_new_test_has_to_fail_on_the_old_files(project: Path) -> None:
    result = await run(project, [*MEND, write("test_more.py", NEW_TEST)], [])

    assert result.value.outcome == "fixed"
    assert result.value.evidence == ["test_more.Calc.test_two_numbers failed before and passes now"]


FALSE_CLAIMS: dict[str, Actions] = {
    "nothing is done": [],
    "the tests break": [write("calc.py", "def (")],
    "the tests are edited": [*MEND, write("test_calc.py", "")],
    "the tests are deleted": [*MEND, shell("rm test_calc.py")],
    "something else is done": [write("other.py", "OTHER = 1\n")],
    "a test proves nothing": [
        write("other.py", "OTHER = 1\n"),
        write("test_more.py", NEW_TEST.replace("add(2, 3), 5", "1, 1")),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("with_command", [True, False])
@pytest.mark.parametrize("claim", FALSE_CLAIMS)
async def test_a_false_claim_is_not_believed(project: Path, claim: str, with_command: bool) -> None:
    result = await run(project, FALSE_CLAIMS[claim], CHECK if with_command else [])

    assert (result.state, result.return_code) == ("completed", 1)
    assert result.value.outcome == "not fixed"
    assert result.value.evidence == []
    assert result.value.reasons


async def test_what_succeeds_before_is_not_begun(project: Path) -> None:
    result = await run(project, MEND, ["true"])

    assert result.value.outcome == "not begun"
    assert "succeeds before anything is changed" in result.value.reasons[0]
    assert git(project, "branch", "--show-current") == "main"


@contextmanager
def issue_server(body: bytes) -> Generator[str]:
    """A server that has one issue, `/3`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/3" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


async def test_an_issue_is_a_text_a_file_or_what_a_url_gives(tmp_path: Path) -> None:
    data = {"title": "It fails", "body": "Always.", "reproduce": "false", "number": 3}
    (tmp_path / "issue.json").write_text(json.dumps(data))
    (tmp_path / "issue.md").write_text("# It fails\n")
    with issue_server(json.dumps(data).encode()) as url:
        fetched = await read_issue(f"{url}/3", tmp_path)
        with pytest.raises(IssueNotRead, match="answers with 404"):
            await read_issue(f"{url}/4", tmp_path)
    from_file = await read_issue("issue.json", tmp_path)

    assert (from_file.text, from_file.reproduce) == ("It fails\n\nAlways.", "false")
    assert (fetched.text, fetched.source) == (from_file.text, f"{url}/3")
    assert (await read_issue("issue.md", tmp_path)).text == "# It fails"
    assert (await read_issue("It fails.", tmp_path)).text == "It fails."
    with pytest.raises(IssueNotRead, match="no text"):
        await read_issue("{}", tmp_path)
