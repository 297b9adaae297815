"""``capdoctor check`` as users call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from capdoctor.commands.check import app
from capdoctor.errors import CannotDo, UsageError

pytest.importorskip("torch")

BAD = "import torch\ndef captured(x=None):\n    y = torch.zeros(2, device='cuda')\n    y[0] = 1\n"
GOOD = "import torch\ndef captured():\n    torch.zeros(2, device='cuda')[:1] = 1\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "good.py").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.mark.usefixtures("files")
def test_findings_exit_1_and_none_exits_0() -> None:
    code, text = call("bad.py")
    assert code == 1
    assert "bad.py:4 in captured" in text
    assert "would raise   RuntimeError: Cannot copy between CPU and CUDA tensors" in text
    code, text = call("good.py")
    assert code == 0
    assert text.startswith("legal in a capture: good.py")


@pytest.mark.usefixtures("files")
def test_json_is_one_object_for_all_targets() -> None:
    code, text = call("bad.py", "good.py::captured", "--json", "--as-torch", "2.11")
    answer = json.loads(text)
    assert code == 1
    assert answer["schema"] == "capdoctor.check/1"
    (finding,) = answer["findings"]
    assert finding["rule"] == "pageable_copy"
    assert (finding["file"], finding["line"], finding["function"]) == ("bad.py", 4, "captured")
    assert finding["would_raise"]["type"] == "RuntimeError"
    assert finding["would_raise"]["code"] is None
    assert finding["invalidates"] is False
    assert finding["stack"] == [{"file": "bad.py", "line": 4, "function": "captured"}]
    assert answer["covered"]["operations"] > 0
    assert answer["covered"]["unknown"] == []
    assert [t["findings"] for t in answer["targets"]] == [1, 0]


@pytest.mark.usefixtures("files")
def test_sarif_names_the_line() -> None:
    code, text = call("bad.py", "--format", "sarif")
    (result,) = json.loads(text)["runs"][0]["results"]
    assert code == 1
    assert result["level"] == "error"
    region = result["locations"][0]["physicalLocation"]
    assert region["artifactLocation"]["uri"] == "bad.py"
    assert region["region"]["startLine"] == 4


@pytest.mark.usefixtures("files")
def test_candidates_are_kept_apart_from_findings() -> None:
    code, text = call("--static", ".", "--json")
    answer = json.loads(text)
    assert code == 1
    assert answer["findings"] == []
    (candidate,) = answer["candidates"]
    assert (candidate["file"], candidate["line"]) == ("bad.py", 4)
    assert candidate["certainty"] in ("likely", "possible", "weak")
    assert answer["read"][0]["files"] == 2
    code, text = call("--static", "bad.py", "--format", "sarif")
    assert json.loads(text)["runs"][0]["results"][0]["level"] == "warning"
    code, text = call("--static", "good.py")
    assert code == 0
    assert "nothing here is proven" in text


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["bad.py", "--json", "--format", "sarif"], UsageError),
        (["bad.py", "--arg", "x"], UsageError),
        (["bad.py", "--op", "x"], UsageError),
        (["bad.py", "--as-torch", "newest"], UsageError),
        (["bad"], UsageError),
        (["absent.py"], CannotDo),
        (["--static", "absent"], CannotDo),
    ],
)
def test_a_wrong_command_line_says_so(arguments: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(*arguments)


@pytest.mark.usefixtures("files")
def test_options_reach_the_checker(files: Path) -> None:
    (files / "more.py").write_text(
        "import torch\n"
        "def f(x, n):\n"
        "    g(x)\n"
        "    return x.sum().item() + n\n"
        "def g(x):\n"
        "    x.nonzero()\n"
    )
    arguments = ("more.py::f", "--arg", "x=float32[4]@cuda", "--arg", "n=2", "--json")
    _, text = call(*arguments)
    assert [f["line"] for f in json.loads(text)["findings"]] == [6, 4]
    _, text = call(*arguments, "--eager", "g")
    assert [f["line"] for f in json.loads(text)["findings"]] == [4]
    _, text = call(*arguments, "--stop-at-first")
    assert [f["line"] for f in json.loads(text)["findings"]] == [6]


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_what_the_checked_code_prints_is_not_in_the_answer(
    files: Path, capfd: pytest.CaptureFixture[str], form: str
) -> None:
    (files / "loud.py").write_text(
        "import os\nprint('python noise')\ndef captured():\n"
        "    print('python noise')\n    os.write(1, b'noise below')\n"
    )
    code, text = call("loud.py", "--format", form)
    assert code == 0
    assert "noise" not in text
    heard = capfd.readouterr()
    assert "noise" not in heard.out
    assert "noise below" in heard.err
