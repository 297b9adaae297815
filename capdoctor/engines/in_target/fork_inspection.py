"""Have vLLM look at a model's class in a fork of its front end.

vLLM does it in a new process, lest CUDA be initialised in the front end; that process imports torch
and vLLM all over again. A fork of the front end has them: the front end stays as clean, and what is
found is the same. ``CAPDOCTOR_FORK_INSPECTION=0`` leaves it to vLLM.

Loaded by ``start_vllm.py`` in another Python: standard library only, syntax of Python 3.9.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

FORK_SWITCH = "CAPDOCTOR_FORK_INSPECTION"
FORKED = "the model's class was looked at in a fork of the front end, not in a new process"
_FORK_SECONDS = 120  # many times what an import takes; a fork that hangs is left to vLLM's own way


def inspect_in_a_fork(done: Callable[[], None]) -> None:
    """Have vLLM look at model classes in a fork, where this release lets itself be told so.

    ``done`` is called after each fork that answered; whatever goes wrong there is left to vLLM's
    own way, which then says what it always says.
    """
    if os.environ.get(FORK_SWITCH) == "0" or not hasattr(os, "fork"):
        return
    try:
        registry: Any = importlib.import_module("vllm.model_executor.models.registry")
        own_way = registry._run_in_subprocess  # noqa: SLF001 - vLLM has no setting for it
    except (ImportError, AttributeError):
        return

    def in_a_fork(look: Callable[[], Any]) -> Any:
        try:
            found = pickle.loads(_forked(look))  # noqa: S301 - our own fork wrote it
        except Exception:  # noqa: BLE001 - nothing or nonsense: vLLM's own way meets it and says it
            return own_way(look)
        done()
        return found

    registry._run_in_subprocess = in_a_fork  # noqa: SLF001


def _forked(look: Callable[[], Any]) -> bytes:
    """Return what ``look`` gives in a fork, pickled; nothing if the fork came to no good end.

    The answer comes in a file, not a pipe: what the fork leaves running may keep a pipe open.

    Raises:
        OSError: there can be no further process or file.
    """
    with tempfile.TemporaryFile() as file:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that forks of processes with threads may hang
            child = os.fork()
        if child == 0:
            _answer_and_exit(look, file)
        if not _ended_well(child):
            return b""
        file.seek(0)
        return file.read()


def _ended_well(child: int) -> bool:
    """Wait for the fork, which may have turned its own alarm off, and end it when it hangs."""
    deadline = time.monotonic() + _FORK_SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _answer_and_exit(look: Callable[[], Any], file: Any) -> NoReturn:
    """Be the fork: deaf and silent, as vLLM's process is, and gone without any exit handler."""
    code = 1
    with suppress(BaseException):  # whatever it is: vLLM's own way will meet it and say it
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_FORK_SECONDS)  # should the front end be gone before
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        file.write(pickle.dumps(look()))
        file.flush()
        code = 0
    os._exit(code)
