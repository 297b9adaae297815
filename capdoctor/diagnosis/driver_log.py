"""What of the driver's own log (``CUDA_LOG_FILE``) says something about a crash.

torch and NCCL probe for what is there at every start, which leaves refusals of calls that harm
nobody: ``data/driver_probes.toml`` lists those that healthy starts leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from capdoctor.capture.driver_log import DriverCall, parse_calls, read_calls
from capdoctor.diagnosis.tables import table


@dataclass(frozen=True, slots=True)
class DriverLog:
    """The sentences that say something, and where they came from."""

    sentences: tuple[str, ...] = ()
    file: Path | None = None

    @property
    def text(self) -> str:
        """All sentences, one a line."""
        return "\n".join(self.sentences)


NO_DRIVER_LOG = DriverLog()


def parse_driver_lines(text: str) -> tuple[str, ...]:
    """Give the sentences of driver lines in a text, harmless ones left out."""
    return _sentences(parse_calls(text))


def read_driver_log(file: Path | None) -> DriverLog:
    """Read a driver log; a file that is missing or cannot be read counts as empty."""
    if file is None:
        return NO_DRIVER_LOG
    return DriverLog(_sentences(read_calls(file)), file)


def _sentences(calls: tuple[DriverCall, ...]) -> tuple[str, ...]:
    said = (text for call in calls if not _harmless(call) for text in call.sentences)
    return tuple(dict.fromkeys(said))


def _harmless(call: DriverCall) -> bool:
    probes = table("driver_probes")["harmless"]
    return any(call.name == probe["error"] and call.api == probe["call"] for probe in probes)
