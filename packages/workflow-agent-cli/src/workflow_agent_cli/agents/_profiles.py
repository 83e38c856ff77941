"""The table of agents: how each is called, what it needs, and how its output is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from workflow_agent_cli.agents._claude import read_claude
from workflow_agent_cli.agents._codex import read_codex
from workflow_agent_cli.agents._hermes import read_hermes
from workflow_agent_cli.agents._opencode import read_opencode
from workflow_agent_cli.agents._qwen import read_qwen
from workflow_agent_cli.agents._reading import LineReader, ReportReader

PROMPT, MODEL, SESSION, REPORT = "{prompt}", "{model}", "{session}", "{report}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """An agent of the command line.

    Its command line is `command`, `arguments`, then those of `model` and `session` where there is
    one, and `last`. An argument that is exactly `{prompt}`, `{model}`, `{session}` or `{report}`
    stands for that. Without a `{prompt}` the agent reads its prompt from standard input, which
    has no limit on its length and doesn't show it in the list of processes.
    """

    name: str
    """What it is called, in messages and records."""
    command: str
    """A program on `PATH`, or the path of one."""
    install: str = ""
    """The command that installs it, for people."""
    arguments: Sequence[str] = ()
    """What follows the command in each run."""
    model: Sequence[str] = ()
    """The words that choose a model; none if it has no such option."""
    session: Sequence[str] = ()
    """Goes on with an earlier session; empty if the agent can't."""
    last: Sequence[str] = ()
    """What stands at the end of the command line."""
    env: Sequence[str] = ()
    """Variables of this process that it gets beside `BASE_ENVIRONMENT`; never another agent's."""
    read_line: LineReader | None = None
    """Reads standard output, line by line; without one, standard output is the final text."""
    read_report: ReportReader | None = None
    """Reads the file `{report}` at the end."""

    def command_line(
        self,
        executable: str,
        *,
        prompt: str,
        model: str,
        session: str,
        report: str,
        more_arguments: Sequence[str],
    ) -> list[str]:
        """Make the whole command line."""
        values = {PROMPT: prompt, MODEL: model, SESSION: session, REPORT: report}
        words = self._argument_template(
            model=bool(model), session=bool(session), more_arguments=more_arguments
        )
        return [executable, *(values.get(word, word) for word in words)]

    @property
    def prompt_is_argument(self) -> bool:
        """Whether the prompt is on the command line."""
        return PROMPT in self._argument_template(model=False, session=False, more_arguments=())

    def _argument_template(
        self, *, model: bool, session: bool, more_arguments: Sequence[str]
    ) -> Iterable[str]:
        yield from self.arguments
        yield from self.model if model else ()
        yield from more_arguments
        yield from self.session if session else ()
        yield from self.last


def profile_for_command(command: Sequence[str]) -> AgentProfile:
    """A profile for any other command: it prints its final text."""
    return AgentProfile(
        name=PurePath(command[0]).name, command=command[0], arguments=tuple(command[1:])
    )


PROFILES: Mapping[str, AgentProfile] = {
    "claude": AgentProfile(
        name="claude",
        command="claude",
        install="npm install -g @anthropic-ai/claude-code",
        # It may change files of the workspace and run commands. `--dangerously-skip-permissions`
        # would allow more, and is refused to root.
        arguments=(
            *("-p", "--output-format", "stream-json", "--verbose"),
            *("--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
        ),
        model=("--model", MODEL),
        session=("--resume", SESSION),
        env=(
            *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            *("ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_MODEL"),
            *("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_MAX_RETRIES"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        ),
        read_line=read_claude,
    ),
    "codex": AgentProfile(
        name="codex",
        command="codex",
        install="npm install -g @openai/codex",
        arguments=("exec", "--json", "--skip-git-repo-check", "-s", "workspace-write"),
        model=("-m", MODEL),
        session=("resume", SESSION),
        last=("-",),
        env=("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"),
        read_line=read_codex,
    ),
    "hermes": AgentProfile(
        name="hermes",
        command="hermes",
        install="uv tool install hermes-agent",
        # `chat -q` tells of a failure by its exit code, but not what it used.
        arguments=("-z", PROMPT, "--usage-file", REPORT),
        model=("-m", MODEL),
        session=("--resume", SESSION),
        # Its providers' keys are in its own home; those of the environment could be anybody's.
        env=("HERMES_HOME", "HERMES_INFERENCE_MODEL"),
        read_report=read_hermes,
    ),
    "opencode": AgentProfile(
        name="opencode",
        command="opencode",
        install="npm install -g opencode-ai",
        arguments=("run", "--format", "json"),
        model=("-m", MODEL),
        session=("-s", SESSION),
        env=("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"),
        read_line=read_opencode,
    ),
    "qwen": AgentProfile(
        name="qwen",
        command="qwen",
        install="npm install -g @qwen-code/qwen-code",
        arguments=("--yolo", "--output-format", "stream-json"),
        model=("-m", MODEL),
        session=("--resume", SESSION),
        # OPENAI_API_KEY would do for it as well, but is codex's.
        env=("DASHSCOPE_API_KEY",),
        read_line=read_qwen,
    ),
}
"""The agents that are known, by name."""
