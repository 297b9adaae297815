"""What the keeper knows about processes and about what they leave behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing import shared_memory
from pathlib import Path

import pytest

from capdoctor.engines.control import end_strays
from capdoctor.engines.keeping import ending, leavings, processes, stats
from tests.engines.support import FAKE_ENGINE, marked_processes, wait_until

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_a_stat_line_is_read_whatever_the_process_calls_itself() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "exec -a 'a ) (b' sleep 60"]) as child:
        stat = stats.read_stat(child.pid)
        child.kill()
    assert stat is not None
    assert stat.parent == os.getpid()
    assert stats.read_stat(2**22 + 1) is None


def test_descendants_are_found_however_deep() -> None:
    def stat(parent: int) -> stats.Stat:
        return stats.Stat("S", parent, 0.0, 1, 0)

    table = {2: stat(1), 3: stat(2), 4: stat(3), 5: stat(1), 6: stat(99), 99: stat(6)}
    assert stats.descendants(table, 2) == {3, 4}
    assert stats.descendants(table, 1) == {2, 3, 4, 5}
    assert stats.descendants(table, 7) == set()


def test_a_zombies_end_is_read_before_its_parent_asks() -> None:
    code = "import os, time\npid = os.fork()\nif not pid: os._exit(7)\nprint(pid, flush=True)\n"
    code += "time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert wait_until(lambda: (stat := stats.read_stat(pid)) is not None and stat.state == "Z")
        stat = stats.read_stat(pid)
        parent.kill()
    assert stat is not None
    assert os.waitstatus_to_exitcode(stat.exit_code) == 7


def test_strays_are_found_by_their_marker_and_ended() -> None:
    marker = f"CAPDOCTOR_RUN=stray{os.getpid()}"
    name, value = marker.split("=")
    child = subprocess.Popen(SLEEP, env={**os.environ, name: value}, start_new_session=True)
    bystander = subprocess.Popen(SLEEP)
    try:
        assert wait_until(lambda: marked_processes(marker) == [child.pid])
        tree = processes.Tree(-1, marker)
        assert ending.end_all(tree, ending.EndOrder(grace=0.0), lambda _gone: None) == []
        assert child.wait(10) in (-signal.SIGKILL, 0)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_strays_of_a_lost_keeper_leave_no_segment_and_no_folder(tmp_path: Path) -> None:
    marker = f"CAPDOCTOR_RUN=lost{os.getpid()}"
    name, value = marker.split("=")
    prefix = f"lost{os.getpid()}"
    env = {**os.environ, name: value, "FAKE_SEGMENTS": prefix, "TMPDIR": str(tmp_path / "t")}
    (tmp_path / "t").mkdir()
    words = [sys.executable, str(FAKE_ENGINE), "files", "segment", "say", "up", "hang"]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        end_strays(marker, str(tmp_path / "t"))
    assert wait_until(lambda: marked_processes(marker) == [])
    assert list(Path("/dev/shm").glob(f"psm_{prefix}*")) == []
    assert not (tmp_path / "t").exists()


@pytest.fixture
def watch() -> leavings.SegmentWatch:
    return leavings.SegmentWatch()


def _abandoned(name: str) -> None:
    path = Path("/dev/shm") / name
    path.write_bytes(b"x")


def test_a_segment_that_somebody_alive_uses_stays(watch: leavings.SegmentWatch) -> None:
    segment = shared_memory.SharedMemory(create=True, size=64)
    try:
        watch.read(set())
        assert segment.name not in watch.unsure | watch.ours
        assert segment.name not in leavings.remove_segments(watch)
        assert (Path("/dev/shm") / segment.name).exists()
    finally:
        segment.close()
        segment.unlink()


def test_a_semaphore_that_somebody_alive_uses_stays(watch: leavings.SegmentWatch) -> None:
    """Its map shows a name that is gone: another run's engine died when names were compared."""
    semaphore = multiprocessing.get_context("spawn").Lock()
    name = "sem." + semaphore._semlock.name.lstrip("/")  # type: ignore[attr-defined]
    watch.read(set())
    assert name not in watch.unsure | watch.ours
    assert name not in leavings.remove_segments(watch)
    assert (Path("/dev/shm") / name).exists()


def test_a_semaphore_of_the_run_is_its_own(watch: leavings.SegmentWatch) -> None:
    semaphore = multiprocessing.get_context("spawn").Lock()
    name = "sem." + semaphore._semlock.name.lstrip("/")  # type: ignore[attr-defined]
    watch.read({os.getpid()})
    assert name in watch.ours
    assert name not in leavings.remove_segments(watch)  # this process is still alive


def test_a_segment_that_its_owner_let_go_of_stays_the_owners(
    watch: leavings.SegmentWatch,
) -> None:
    segment = shared_memory.SharedMemory(create=True, size=64)
    watch.read(set())
    segment.close()  # to be attached to by name, later
    try:
        assert segment.name not in leavings.remove_segments(watch)
        assert (Path("/dev/shm") / segment.name).exists()
    finally:
        segment.unlink()


@pytest.mark.parametrize("name", ["psm_0a1b2c3d", "sem.mp-x8_2ab", "sem.fcmuE3", "nccl-Ab12Cd"])
def test_a_segment_that_nobody_uses_any_more_goes(watch: leavings.SegmentWatch, name: str) -> None:
    _abandoned(name)
    watch.read(set())
    assert name in leavings.remove_segments(watch)
    assert not (Path("/dev/shm") / name).exists()


def test_what_was_there_before_and_what_no_engine_makes_stays(tmp_path: Path) -> None:
    _abandoned("psm_before00")
    watch = leavings.SegmentWatch()
    _abandoned("my-database-cache")
    try:
        watch.read(set())
        removed = leavings.remove_segments(watch)
        assert "psm_before00" not in removed
        assert "my-database-cache" not in removed
    finally:
        for name in ("psm_before00", "my-database-cache"):
            (Path("/dev/shm") / name).unlink()


def test_a_segment_of_the_run_goes_whatever_its_name(watch: leavings.SegmentWatch) -> None:
    code = "import time\nf = open('/dev/shm/odd-name', 'wb')\nprint(1, flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        watch.read({child.pid})
        assert watch.ours == {"odd-name"}
        child.kill()
    assert leavings.remove_segments(watch) == ["odd-name"]


def test_a_segment_of_a_process_that_was_seen_too_late_is_the_runs_after_all(
    watch: leavings.SegmentWatch,
) -> None:
    code = "import time\nf = open('/dev/shm/psm_late', 'wb')\nprint(1, flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        watch.read(set())  # the run's processes as they were known before it was started
        child.kill()
    assert leavings.remove_segments(watch) == []
    watch.adopt({1, child.pid})
    assert leavings.remove_segments(watch) == ["psm_late"]


@pytest.mark.parametrize(
    ("pid", "ipc", "everyone"),
    [
        ("pid:[4026531836]", "ipc:[4026531839]", True),  # no container
        ("pid:[4026532501]", "ipc:[4026532500]", True),  # a container with a /dev/shm of its own
        ("pid:[4026532501]", "ipc:[4026531839]", False),  # --ipc=host
    ],
)
def test_in_the_hosts_ipc_what_nobody_seems_to_have_may_be_a_neighbours(
    pid: str, ipc: str, everyone: bool, tmp_path: Path
) -> None:
    (tmp_path / "pid").symlink_to(pid)
    (tmp_path / "ipc").symlink_to(ipc)
    assert leavings.sees_every_user(tmp_path) is everyone


def test_ending_takes_no_longer_than_it_has_to() -> None:
    marker = f"CAPDOCTOR_RUN=swift{os.getpid()}"
    name, value = marker.split("=")
    child = subprocess.Popen(SLEEP, env={**os.environ, name: value})
    assert wait_until(lambda: marked_processes(marker) == [child.pid])
    began = time.monotonic()
    ending.end_all(processes.Tree(-1, marker), ending.EndOrder(grace=5.0), lambda _gone: None)
    assert time.monotonic() - began < 2
    assert child.wait(5) in (-signal.SIGTERM, 0)
