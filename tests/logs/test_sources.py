"""Logs come plain and packed, from files, folders, archives and pipes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from capdoctor.errors import CannotDo
from capdoctor.logs import read_log, read_logs
from tests.logs import mutations as m

DATA = m.corpus("mineru-4350-ptxas.log")
ROOT = Path(__file__).resolve().parent.parent.parent
Pack = Callable[[bytes], bytes]


def zipped(data: bytes, *names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("a.log",):
            archive.writestr(name, data)
    return out.getvalue()


def tarred(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("pod/vllm.log")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACKS: dict[str, Pack] = {
    "gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress, "zstd": zst,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PACKS))
def test_packed_logs_are_told_by_their_bytes_not_their_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "no-suffix"
    path.write_bytes(PACKS[name](DATA))
    log = read_log(path)
    assert (log.compression, m.story(log)) == (name, m.told(DATA))


@pytest.mark.parametrize("name", sorted(PACKS))
def test_several_packed_parts_in_one_file_are_one_log(tmp_path: Path, name: str) -> None:
    half = DATA.index(b"\n", len(DATA) // 2) + 1
    path = tmp_path / "x"
    path.write_bytes(PACKS[name](DATA[:half]) + PACKS[name](DATA[half:]))
    assert read_log(path).total_lines == DATA.count(b"\n")


@pytest.mark.parametrize("name", sorted(PACKS))
def test_packed_log_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    packed = PACKS[name](DATA * 200)
    path = tmp_path / "x"
    path.write_bytes(packed[: len(packed) * 9 // 10])
    try:
        log = read_log(path)
    except CannotDo as error:  # a format that gives nothing before it has everything
        assert "damaged" in error.sentence or "holds no log" in error.sentence  # noqa: PT017 - either outcome is right
        return
    assert log.limits_hit[0] == "the packed data ends early or is damaged"
    assert log.total_lines > 0


def test_zip_with_one_member_is_a_log_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped(gzip.compress(DATA), "logs/pod.log.gz"))
    log = read_log(path)
    assert (log.member, log.compression) == ("logs/pod.log.gz", "gzip")
    assert log.runs[0].nodes[0].line == 20


def test_tar_gz_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tgz"
    path.write_bytes(tarred(DATA))
    assert read_log(path).member == "pod/vllm.log"


def test_archive_with_several_logs_is_read_as_several(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped(DATA, "b.log", "a.log"))
    assert [log.member for log in read_logs(path)] == ["a.log", "b.log"]
    with pytest.raises(CannotDo, match="several logs"):
        read_log(path)


def test_folder_is_read_in_the_order_of_names_without_empty_and_binary_files(
    tmp_path: Path,
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b.log").write_bytes(DATA)
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(DATA))
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "image.png").write_bytes(bytes(range(32)) * 40)
    (tmp_path / ".hidden").write_bytes(DATA)
    assert [log.member for log in read_logs(tmp_path)] == ["a.log.gz", "sub/b.log"]


def test_standard_input_is_a_dash() -> None:
    code = "from capdoctor.logs import read_log; print(len(read_log('-').runs[0].nodes))"
    run = subprocess.run(
        [sys.executable, "-c", code], input=zst(DATA), capture_output=True, check=True, cwd=ROOT
    )
    assert run.stdout.strip() == b"3"


def test_stream_is_read_without_seeking() -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self._rest = io.BytesIO(lzma.compress(DATA))

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            return self._rest.read(min(size, 7) if size > 0 else size)

    assert m.story(read_log(Pipe())) == m.told(DATA)  # type: ignore[arg-type]


def refused(path: Path, *words: str) -> None:
    with pytest.raises(CannotDo) as caught:
        read_log(path)
    assert all(word in caught.value.sentence for word in words)
    assert caught.value.hint


def test_what_cannot_be_read_gets_one_sentence_and_a_hint(tmp_path: Path) -> None:
    refused(tmp_path / "missing.log", "cannot be read", "no such file")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b" + b"\xff" * 40)
    refused(tmp_path / "bad.gz", "damaged")
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04" + b"x" * 40)
    refused(tmp_path / "bad.zip", "damaged")
    refused(Path("nul\x00name"), "no file name")
    refused(tmp_path / "empty", "holds no log")
    empty_folder = tmp_path / "folder"
    empty_folder.mkdir()
    refused(empty_folder, "holds no log")


def test_log_packed_in_itself_too_often_is_refused(tmp_path: Path) -> None:
    data = DATA
    for _ in range(6):
        data = gzip.compress(data)
    path = tmp_path / "bomb"
    path.write_bytes(data)
    refused(path, "packed too many times")


@pytest.mark.parametrize("name", ["", "a" * 5_000, "/dev/zero", "/dev/urandom", "/dev/null"])
def test_names_that_are_no_log_are_told(name: str) -> None:
    with pytest.raises(CannotDo):
        read_log(name)


def test_names_in_an_archive_bring_no_escapes() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("\x1b]0;owned\x07../../x.log", "ValueError: x\n")
    packed.seek(0)
    (log,) = read_logs(packed)
    assert log.member == "../../x.log"
