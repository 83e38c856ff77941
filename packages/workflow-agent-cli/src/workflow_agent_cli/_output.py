"""An agent's standard output as it comes: lines for its reader, or text, in bounded memory."""

from __future__ import annotations

from workflow_agent_cli.agents._reading import LineReader, Reading
from workflow_protocol import Event, WorkflowError

_MAX_NON_JSON_CHARS = 4000


class OutputTooLarge(WorkflowError):
    """The output is longer than it may be."""


class LineCollector:
    """Gives a reader whole lines. One that is longer than `max_bytes` is left out."""

    def __init__(self, read: LineReader, reading: Reading, max_bytes: int) -> None:
        self._read = read
        self._reading = reading
        self._max_bytes = max_bytes
        self._rest = bytearray()
        self._skipping = False
        self.left_out = 0
        """How many lines were too long."""
        self.non_json = ""
        """The beginning of what was no JSON: an agent that can't start says so in words."""

    def feed(self, data: bytes) -> tuple[Event, ...]:
        """Take the next bytes; give what observers should hear of."""
        events: tuple[Event, ...] = ()
        while True:
            line, newline, data = data.partition(b"\n")
            self._rest += line if not self._skipping else b""
            if len(self._rest) > self._max_bytes:
                self._rest.clear()
                self._skipping = True
                self.left_out += 1
            if not newline:
                return events
            events += self._line()
            self._skipping = False

    def end(self) -> tuple[Event, ...]:
        """The last line may have no end."""
        return self._line()

    def _line(self) -> tuple[Event, ...]:
        line = bytes(self._rest).strip()
        self._rest.clear()
        if not line:
            return ()
        if not line.startswith(b"{"):
            room = _MAX_NON_JSON_CHARS - len(self.non_json)
            self.non_json += (line.decode("utf-8", "replace") + "\n")[:room]
            return ()
        return self._read(line, self._reading)


class TextCollector:
    """Collects text."""

    def __init__(self, reading: Reading, max_bytes: int) -> None:
        self._reading = reading
        self._max_bytes = max_bytes
        self._data = bytearray()
        self.left_out = 0
        self.non_json = ""

    def feed(self, data: bytes) -> tuple[Event, ...]:
        """Take the next bytes.

        Raises:
            OutputTooLarge: it is more than may be.
        """
        self._data += data
        if len(self._data) > self._max_bytes:
            del self._data[self._max_bytes :]
            raise OutputTooLarge(f"it wrote more than {self._max_bytes} bytes")
        return ()

    def end(self) -> tuple[Event, ...]:
        """The text is complete, or it was stopped."""
        self._reading.text = self._data.decode("utf-8", "replace").strip()
        return ()
