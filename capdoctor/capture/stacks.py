"""Stacks as the user wrote them: without the frames of the virtual device and of torch."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from capdoctor.model import Frame

_OURS = str(Path(__file__).resolve().parent) + os.sep
_DRIVER = _OURS + "segments.py"  # it is there on a real device too
_DISPATCH = tuple(
    f"{os.sep}{Path('torch', *parts)}"
    for parts in (("utils", "_python_dispatch.py"), ("overrides.py",), ("_compile.py",))
)
_OPERATORS = f"{os.sep}{Path('torch', '_ops.py')}"
_REENTRIES = ("decompose", "redispatch")  # how the lower net looks into an operator
_TORCH = os.sep + "torch" + os.sep
_SITE = ("site-packages" + os.sep, "dist-packages" + os.sep)
_STDLIB = sysconfig.get_path("stdlib") + os.sep
_DEPTH = 60


def is_ours(filename: str) -> bool:
    """Say whether the file is no part of the user's program, nor of the torch that it calls."""
    return filename.startswith(_OURS) or filename.endswith(_DISPATCH)


def _is_shim_frame(code: CodeType) -> bool:
    """Say whether the frame exists only because the device is virtual."""
    name = code.co_filename
    if is_ours(name):
        return not name.startswith(_DRIVER)
    return code.co_name in _REENTRIES and name.endswith(_OPERATORS)


def short_path(filename: str) -> str:
    """The file from its package on, or from the working folder on."""
    for site in _SITE:
        if site in filename:
            return filename.rpartition(site)[2]
    here = str(Path.cwd()) + os.sep
    return filename.removeprefix(here)


def user_stack() -> tuple[Frame, ...]:
    """The caller's frames, outermost first, without shims and without torch's own."""
    frames: list[Frame] = []
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - traceback would read sources
    while frame is not None and len(frames) < _DEPTH:
        name = frame.f_code.co_filename
        if not (_is_shim_frame(frame.f_code) or is_ours(name) or _is_torch(name)):
            frames.append(Frame(short_path(name), frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(frames))


def place_of(stack: Sequence[Frame]) -> Frame | None:
    """The innermost line that is not of Python's own library: what the user can change."""
    changeable = [frame for frame in stack if not frame.file.startswith(_STDLIB)]
    if changeable:
        return changeable[-1]
    return stack[-1] if stack else None


def _is_torch(filename: str) -> bool:
    return any(site.rstrip(os.sep) + _TORCH in filename for site in _SITE)


def without_shims(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback as a real device would leave it."""
    if traceback is None:
        return None
    rest = without_shims(traceback.tb_next)
    if _is_shim_frame(traceback.tb_frame.f_code):
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def clean_exception(error: BaseException) -> BaseException:
    """Take the shim frames out of an exception and of everything it is chained to."""
    seen: set[int] = set()
    chain: BaseException | None = error
    while chain is not None and id(chain) not in seen:
        seen.add(id(chain))
        chain.__traceback__ = without_shims(chain.__traceback__)
        chain = chain.__cause__ or chain.__context__
    return error
