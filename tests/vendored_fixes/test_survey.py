"""The cheap look finds the files that matter, wherever they are, and stops at nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.shop import check
from capdoctor.vendored_fixes.survey import look, read_bytes
from capdoctor.vendored_fixes.targets import find_target
from tests.vendored_fixes.conftest import as_nobody, write

FIX = find_fix("fold-indptr")


def test_only_files_with_a_marker_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "aiter/__init__.py", b"")
    write(tmp_path / "aiter/ops/deep/mla.py", b"def _fold_seqlen_indptr(): ...\n")
    write(tmp_path / "aiter/notes.txt", b"_fold_seqlen_indptr")
    write(tmp_path / "aiter/__pycache__/x.py", b"_fold_seqlen_indptr")
    assert list(look(tmp_path / "aiter", FIX).files) == ["aiter/ops/deep/mla.py"]


def test_linked_folders_are_followed_once(tmp_path: Path) -> None:
    write(tmp_path / "store/mla.py", b"# _fold_seqlen_indptr\n")
    write(tmp_path / "aiter/__init__.py", b"")
    (tmp_path / "aiter/ops").symlink_to(tmp_path / "store")
    (tmp_path / "store/round").symlink_to(tmp_path / "aiter")
    assert list(look(tmp_path / "aiter", FIX).files) == ["aiter/ops/mla.py"]


def test_a_pipe_or_a_socket_is_no_module_and_is_not_opened(tmp_path: Path) -> None:
    write(tmp_path / "aiter/__init__.py", b"")
    os.mkfifo(tmp_path / "aiter/pipe.py")
    os.mkfifo(tmp_path / "aiter/mla.py")
    found = look(tmp_path / "aiter", FIX)
    assert found.files == {}
    assert [(site.file, site.reason) for site in found.problems] == [
        ("aiter/mla.py", "is no ordinary file")
    ]


def test_a_closed_folder_is_an_answer_that_names_it(tmp_path: Path) -> None:
    write(tmp_path / "aiter/__init__.py", b"")
    write(tmp_path / "aiter/ops/mla.py", b"# _fold_seqlen_indptr\n")
    (tmp_path / "aiter/ops").chmod(0)
    answer = as_nobody(tmp_path, lambda: [s.file for s in look(tmp_path / "aiter", FIX).problems])
    (tmp_path / "aiter/ops").chmod(0o755)
    assert answer == ["aiter/ops"]


def test_a_home_in_a_closed_folder_is_an_answer_too(tmp_path: Path) -> None:
    sparse = find_fix("sparse-mla")
    for name in (*sparse.homes, *sparse.also_read):
        write(tmp_path / name, b"logical_topk_ready = 1\n")
    (tmp_path / "vllm/v1").chmod(0)
    answer = as_nobody(tmp_path, lambda: [s.file for s in look(tmp_path / "vllm", sparse).problems])
    (tmp_path / "vllm/v1").chmod(0o755)
    assert answer == ["vllm/v1"]


def test_also_read_comes_along_only_with_a_marker(tmp_path: Path) -> None:
    sparse = find_fix("sparse-mla")
    write(tmp_path / "vllm/forward_context.py", b"def get_forward_context(): ...\n")
    assert look(tmp_path / "vllm", sparse).files == {}
    write(tmp_path / "vllm/x.py", b"logical_topk_ready = 1\n")
    assert sorted(look(tmp_path / "vllm", sparse).files) == ["vllm/forward_context.py", "vllm/x.py"]


def test_a_tree_without_a_marker_is_answered_without_the_rooms_code(tmp_path: Path) -> None:
    write(tmp_path / "aiter/__init__.py", b"")
    result = check(FIX, find_target(str(tmp_path), FIX))
    assert result.status_before is FixStatus.NOT_APPLICABLE
    assert result.reason == "no file of aiter mentions _fold_seqlen_indptr"


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    data = b"x" * 3_000_001
    write(tmp_path / "large", data)
    assert read_bytes(tmp_path / "large") == data
    assert read_bytes("/proc/self/status").startswith(b"Name:")
