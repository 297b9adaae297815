"""From the bad end's traceback and the history of a range to a weight for every candidate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from capdoctor.bisection.history.layout import Layout
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.history.pins import is_pin_file, moved_pins
from capdoctor.bisection.journal.story import Story
from capdoctor.bisection.line import Line
from capdoctor.bisection.prior.blamed import blamed
from capdoctor.bisection.prior.mix import Clues, weigh
from capdoctor.bisection.prior.places import FramePlace, files_at, locate, native_sources
from capdoctor.bisection.prior.touches import Touched, touched
from capdoctor.model import Frame

# A dependency whose move is a suspect of its own.
SUSPECTS = frozenset({"torch", "triton", "aiter", "amd-aiter", "flashinfer-python", "nvidia-nccl"})
# Classes that say by themselves that packages do not fit together.
_OF_PACKAGES = frozenset({"abi_mismatch", "package_version_conflict", "lib_missing"})


@dataclass(frozen=True, slots=True)
class Crash:
    """What is known of the crash: its frames, innermost first, and its class.

    ``lines_hold``: the line numbers are those of the newer end's files.
    """

    frames: tuple[Frame, ...]
    crash_class: str | None = None
    lines_hold: bool = True


def prior_for(
    mirror: Mirror, layout: Layout | None, story: Story, line: Line, between: tuple[int, int]
) -> tuple[float, ...] | None:
    """Return a weight for every candidate of the line, None when nothing is known.

    Only candidates between the two indices are told apart; the others are settled already.
    """
    crash = _crash_of(story)
    if crash is None or not crash.frames:
        return None
    ends = line.commits[between[0]], line.commits[between[1]]
    candidates = [line.changed_at(position) for position in range(1, line.size + 1)]
    return weights_of(mirror, layout, ends, candidates, crash)


def _crash_of(story: Story) -> Crash | None:
    for run in story.runs:
        seen = run.observation
        if run.sha == story.bad_end and seen.signature:
            frames = seen.frames or ((seen.root,) if seen.root else ())
            return Crash(frames, seen.crash_class, lines_hold=not story.begin.request.find_fix)
    return None


def weights_of(
    mirror: Mirror,
    layout: Layout | None,
    ends: tuple[str, str],
    candidates: Sequence[str],
    crash: Crash,
) -> tuple[float, ...] | None:
    """Return the weight of each candidate commit of the range between two commits."""
    older, newer = ends
    named_at = newer if crash.lines_hold else older
    places = locate(crash.frames, files_at(mirror, named_at))
    native = native_sources(mirror, named_at, places, layout.native if layout else ())
    watch = {place.path for place in places} | {path for found in native for path in found}
    history = touched(mirror, older, newer, watch)
    numbers = {sha: number for number, sha in enumerate(candidates)}
    moved = _pin_movers(mirror, history, numbers)
    clues = Clues(
        len(candidates),
        _numbered((history.with_file(path) for path in _paths(places)), numbers),
        _numbered((history.with_function(*pair) for pair in _functions(places)), numbers),
        _numbered(_line_commits(mirror, ends, places), numbers) if crash.lines_hold else (),
        _numbered((_union(history, found) for found in native), numbers),
        [_python_files(history, sha, layout) for sha in candidates],
        moved,
        0.5 if crash.crash_class in _OF_PACKAGES else 0.05,
    )
    return weigh(clues)


def _numbered(
    found: Iterable[frozenset[str]], numbers: dict[str, int]
) -> tuple[frozenset[int], ...]:
    return tuple(frozenset(numbers[sha] for sha in shas if sha in numbers) for shas in found)


def _paths(places: Sequence[FramePlace]) -> list[str]:
    return list(dict.fromkeys(place.path for place in places))


def _functions(places: Sequence[FramePlace]) -> list[tuple[str, str]]:
    pairs = ((place.path, place.function) for place in places if place.function)
    return list(dict.fromkeys(pairs))


def _line_commits(
    mirror: Mirror, ends: tuple[str, str], places: Sequence[FramePlace]
) -> list[frozenset[str]]:
    wanted = [(place.path, place.line) for place in places if place.line]
    by_file = {
        path: blamed(mirror, *ends, path, [line for other, line in wanted if other == path])
        for path in dict.fromkeys(path for path, _ in wanted)
    }
    found = (by_file[path].get(line) for path, line in wanted)
    return [frozenset({sha} if sha else ()) for sha in found]


def _union(history: Touched, paths: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*(history.with_file(path) for path in paths))


def _python_files(history: Touched, sha: str, layout: Layout | None) -> int:
    inside = tuple(f"{folder}/" for folder in layout.python) if layout else ("",)
    files = history.files.get(sha, frozenset())
    return sum(1 for path in files if path.endswith(".py") and path.startswith(inside))


def _pin_movers(mirror: Mirror, history: Touched, numbers: dict[str, int]) -> frozenset[int]:
    found = set()
    for sha, files in history.files.items():
        pinned = [path for path in files if is_pin_file(path)]
        if sha not in numbers or not pinned:
            continue
        moved = moved_pins(mirror, f"{sha}^1", sha, pinned)
        if any(pin.package in SUSPECTS for pin in moved):
            found.add(numbers[sha])
    return frozenset(found)
