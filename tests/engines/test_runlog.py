"""The log on disk, and what its lines tell about processes."""

from __future__ import annotations

from pathlib import Path

from capdoctor.engines.rundir import RunFolder
from capdoctor.engines.runlog import RunLog


def test_names_and_codes_are_learnt_from_the_lines(tmp_path: Path) -> None:
    with RunLog(RunFolder(tmp_path)) as log:
        log.write(b"(VllmWorker-0 pid=12) WARNING x\n", "out", 0.1)
        log.write(b"(Worker_TP0 pid=12) INFO x\n", "out", 0.2)
        log.write(
            b"RuntimeError: Failed core proc(s): {'EngineCore_DP0': -9, 'b': 1}\n", "err", 1.0
        )
        log.write(b"ERROR Worker proc VllmWorker-1 died unexpectedly, exit code: -11\n", "out", 1.1)
        log.write(b"Failed core proc(s): {}\n", "err", 1.2)
    assert log.names == {12: "Worker_TP0"}
    assert log.codes == {"EngineCore_DP0": -9, "b": 1, "VllmWorker-1": -11}


def test_what_comes_after_the_split_is_kept_apart(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with RunLog(folder) as log:
        log.write(b"before\n", "out", 0.5)
        log.split()
        log.write(b"after\n", "err", 1.5)
    assert folder.log.read_bytes() == b"before\n"
    assert folder.after.read_bytes() == b"after\n"
    assert folder.timing.read_bytes() == b"0.500\tout\n"


def test_bytes_are_kept_as_they_are(tmp_path: Path) -> None:
    with RunLog(RunFolder(tmp_path)) as log:
        log.write(b"\xff\x00\x1b[31m[rank0]\r\n", "out", 0.0)
    assert RunFolder(tmp_path).log.read_bytes() == b"\xff\x00\x1b[31m[rank0]\r\n"
