"""A model file of one's own: what it must have, and what is said when it has not."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.engines.embedded.model_file import SetupFailed
from capdoctor.engines.embedded.settings import Settings
from tests.engines.embedded.start import start

GOOD = """
import torch
CAPTURE_SIZES = [1, 2]
def build():
    return torch.nn.Linear(4, 4)
def inputs(batch):
    return (torch.ones(batch, 4, device="cuda"),)
"""
ILLEGAL = GOOD.replace("return torch.nn.Linear(4, 4)", "return Model()").replace(
    "def build", "class Model(torch.nn.Module):\n    def forward(self, x):\n        x[0, 0] = 1.0\n"
    "        return x\ndef build",
)  # fmt: skip


def _start(folder: Path, text: str) -> tuple[BaseException | None, str]:
    file = folder / "own.py"
    file.write_text(text, encoding="utf-8")
    return start(Settings("own.py", str(file), "own.py"))


def test_a_legal_file_starts(tmp_path: Path) -> None:
    error, log = _start(tmp_path, GOOD)
    assert error is None
    assert "Capturing CUDA graphs (FULL): 100%" in log


def test_an_illegal_file_crashes_and_starts_when_made_legal(tmp_path: Path) -> None:
    error, _log = _start(tmp_path, ILLEGAL)
    assert isinstance(error, RuntimeError)
    assert not isinstance(error, SetupFailed)
    assert _start(tmp_path, ILLEGAL.replace("x[0, 0] = 1.0", "x[0, :1] = 1.0"))[0] is None


def test_the_traceback_shows_the_lines_of_the_file(tmp_path: Path) -> None:
    import traceback

    error, _log = _start(tmp_path, ILLEGAL)
    text = "".join(traceback.format_exception(error))
    assert 'File "own.py", line 6, in forward\n    x[0, 0] = 1.0\n' in text
    assert "capdoctor/capture/" not in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nonesuch_package", "cannot be imported: ModuleNotFoundError"),
        ("def build(:", r"cannot be imported: SyntaxError: .* \(line 1\)"),
        ("raise SystemError('no')", "cannot be imported: SystemError: no"),
        ("import sys; sys.exit(0)", "cannot be imported: SystemExit: 0"),
        ("", "defines no build"),
        (GOOD.replace("def inputs", "def input"), "defines no inputs"),
        (GOOD.replace("[1, 2]", "[]"), "CAPTURE_SIZES must be"),
        (GOOD.replace("[1, 2]", "[0]"), "CAPTURE_SIZES must be"),
        (GOOD.replace("torch.nn.Linear(4, 4)", "4"), "build.. must return a torch.nn.Module"),
        (GOOD.replace(', device="cuda"', ""), "must return tensors on 'cuda'; item 0 is on cpu"),
        (GOOD.replace('device="cuda"),)', 'device="cuda"))'), "must return a tuple, not Tensor"),
    ],
)
def test_a_file_that_is_no_model_is_a_setup_failure(tmp_path: Path, text: str, words: str) -> None:
    error, _log = _start(tmp_path, text)
    assert isinstance(error, SetupFailed)
    assert error.__class__.__name__ == "SetupFailed"
    with pytest.raises(SetupFailed, match=words):
        raise error


def test_a_binary_file_is_a_setup_failure(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_bytes(b"\xff\xfe\x00")
    error, _log = start(Settings("own.py", str(file), "own.py"))
    assert isinstance(error, SetupFailed)


def test_an_error_of_the_models_own_code_is_a_crash(tmp_path: Path) -> None:
    text = GOOD.replace("return torch.nn.Linear(4, 4)", "raise ValueError('bad width')")
    error, log = _start(tmp_path, text)
    assert isinstance(error, ValueError)
    assert "Loading model from scratch..." in log
    assert "Model loading took" not in log


def test_no_real_device_here_is_a_setup_failure(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a device")
    file = tmp_path / "own.py"
    file.write_text(GOOD)
    error, _log = start(Settings("own.py", str(file), "own.py", device="cuda"))
    assert isinstance(error, SetupFailed)
