"""All frames of the root exception, for the prior: a diagnosis shows only two of them."""

from __future__ import annotations

from pathlib import Path

from capdoctor.errors import CannotDo
from capdoctor.logs import ExceptionNode, package_path, read_log
from capdoctor.model import Frame


def frames_of(log: Path, root: Frame | None) -> tuple[Frame, ...]:
    """Return the frames of the traceback that holds ``root``, innermost first.

    The longest one counts: the same exception is often printed several times, cut or whole.
    Without such a traceback ``root`` stands alone.
    """
    if root is None:
        return ()
    try:
        parsed = read_log(log)
    except CannotDo:
        return (root,)
    nodes = [node for run in parsed.runs for node in run.nodes if _holds(node, root)]
    longest = max(nodes, key=lambda node: len(node.frames), default=None)
    return _frames(longest) if longest else (root,)


def _frames(node: ExceptionNode) -> tuple[Frame, ...]:
    frames = (
        Frame(frame.path or package_path(frame.file), frame.line, frame.function)
        for frame in reversed(node.frames)
    )
    return tuple(dict.fromkeys(frames))


def _holds(node: ExceptionNode, root: Frame) -> bool:
    return any(
        (frame.line, frame.function) == (root.line, root.function)
        and (frame.path or frame.file).endswith(root.file)
        for frame in node.frames
    )
