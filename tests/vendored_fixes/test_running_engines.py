"""Processes that use a package are found by their signs, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from capdoctor.errors import CannotDo
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.reverting import revert
from capdoctor.vendored_fixes.running_engines import users_of
from capdoctor.vendored_fixes.targets import Target, find_target
from tests.helpers.fix_cases import Case
from tests.vendored_fixes.conftest import snapshot, write

FIX = find_fix("sparse-mla")
SLEEP = "import sys, time; sys.stdout.write('up\\n'); sys.stdout.flush(); time.sleep(60)"


@pytest.fixture
def target(make_tree: Callable[..., Path], sparse_case: Case) -> Target:
    return find_target(str(make_tree(sparse_case)), FIX)


@contextmanager
def running(command: list[str], **environment: str) -> Iterator[int]:
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "up\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_an_engine_on_the_tree_is_refused_unless_told(target: Target) -> None:
    before = snapshot(target.folder.parent)
    with running([sys.executable, "-c", SLEEP], PYTHONPATH=str(target.folder.parent)) as pid:
        with pytest.raises(CannotDo, match=f"in use by process {pid}") as caught:
            apply(FIX, target)
        assert "--live" in caught.value.hint
        assert snapshot(target.folder.parent) == before
        assert apply(FIX, target, live=True).status_after is FixStatus.FIXED
        with pytest.raises(CannotDo, match="in use by process"):
            revert(FIX, target)
        revert(FIX, target, live=True)
    assert snapshot(target.folder.parent) == before


def test_a_loaded_library_of_the_package_is_a_sign(target: Target) -> None:
    library = target.folder / "_C.abi3.so"
    write(library, b"\0" * 4096)
    code = (
        f"import mmap; f = open({str(library)!r}, 'rb'); "
        f"m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); {SLEEP}"
    )
    with running([sys.executable, "-c", code]) as pid:
        library_users = users_of(target.folder, None)
        assert [(u.pid, u.why) for u in library_users if u.pid == pid] == [
            (pid, "it has a library of the package loaded")
        ]


def test_a_script_of_the_package_on_the_command_line_is_a_sign(target: Target) -> None:
    script = target.folder / "serve.py"
    write(script, SLEEP.encode())
    with running([sys.executable, str(script)]) as pid:
        assert pid in [user.pid for user in users_of(target.folder, None)]


def test_other_pythons_are_no_sign(target: Target, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with running([sys.executable, "-c", SLEEP], PYTHONPATH=str(other)) as pid:
        assert pid not in [user.pid for user in users_of(target.folder, None)]


def fake_process(
    proc: Path, pid: int, command: list[str], maps: str = "", environ: dict[str, str] | None = None
) -> None:
    folder = proc / str(pid)
    write(folder / "cmdline", "\0".join(command).encode())
    write(folder / "maps", maps.encode())
    pairs = (f"{k}={v}" for k, v in (environ or {}).items())
    write(folder / "environ", "\0".join(pairs).encode())
    write(folder / "status", b"Name:\tx\nPPid:\t1\n")


PACKAGE = Path("/srv/env/lib/python3.12/site-packages/vllm")
MAPS = "7f r-xp 0 0 0 /srv/env/lib/python3.12/site-packages/torch/lib/libc10.so\n"
PYTHON = "7f r-xp 0 0 0 /usr/bin/python3.12\n"


@pytest.mark.parametrize(
    ("command", "maps", "environ", "found"),
    [
        pytest.param(["VLLM::EngineCore"], PYTHON + MAPS, {}, True, id="renamed engine core"),
        pytest.param(
            ["/srv/env/bin/python", "/srv/env/bin/vllm", "serve", "m"], PYTHON, {}, True, id="serve"
        ),
        pytest.param(
            ["python", "-m", "vllm.entrypoints.openai.api_server"],
            PYTHON,
            {"VIRTUAL_ENV": "/srv/env"},
            True,
            id="module",
        ),
        pytest.param(
            ["/opt/x/bin/python", "/opt/x/bin/vllm", "serve"], PYTHON, {}, False, id="another env"
        ),
        pytest.param(["VLLM::Worker_TP0"], PYTHON, {}, False, id="engine of somewhere else"),
        pytest.param(
            ["/srv/env/bin/python", "-m", "http.server"], PYTHON + MAPS, {}, False, id="no engine"
        ),
        pytest.param(["vim", f"{PACKAGE}/envs.py"], "", {}, False, id="an editor"),
        pytest.param(
            ["/srv/env/bin/python", "/srv/env/bin/capdoctor", "apply", "--target", str(PACKAGE)],
            PYTHON,
            {},
            False,
            id="another capdoctor waits for its turn",
        ),
        pytest.param(["bash"], "", {"PYTHONPATH": str(PACKAGE.parent)}, False, id="a shell"),
        pytest.param([], "", {}, False, id="a kernel thread"),
    ],
)
def test_the_signs(
    tmp_path: Path, command: list[str], maps: str, environ: dict[str, str], found: bool
) -> None:
    fake_process(tmp_path, 77, command, maps, environ)
    users = users_of(PACKAGE, Path("/srv/env"), proc=tmp_path)
    assert [user.pid for user in users] == ([77] if found else [])


def test_the_look_is_quick_and_survives_what_it_may_not_read(tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    started = time.perf_counter()
    assert users_of(PACKAGE, None, proc=tmp_path) == []
    users_of(PACKAGE, None)
    assert time.perf_counter() - started < 10
