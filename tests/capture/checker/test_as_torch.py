"""One program under the rules of two releases of torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.capture.checker import CheckOptions, check, parse_target

pytest.importorskip("torch")

HEAD = "import torch\nX = torch.ones(4, device='cuda')\nG = torch.Generator(device='cuda')\n"


def found(tmp_path: Path, body: str, release: str) -> list[tuple[str, str]]:
    """Rule and message of every finding."""
    file = tmp_path / f"target_{release.replace('.', '_')}.py"
    file.write_text(f"{HEAD}def captured():\n    {body}\n")
    result = check(parse_target(str(file)), CheckOptions(as_torch=release))
    return [(f.rule, f.would_raise.message.split("\n")[0]) for f in result.findings]


@pytest.mark.parametrize(
    ("body", "rule", "old", "new"),
    [
        ("X.normal_(generator=G)", "rng_unregistered", "Attempt to increase", "RNG op during"),
        ("X[0] = 1", "pageable_copy", "Cannot copy between", "Cannot copy between"),
        ("X.sum().item()", "host_read", "CUDA error: operation not", "CUDA error: operation not"),
    ],
)
def test_the_words_are_those_of_the_release(
    tmp_path: Path, body: str, rule: str, old: str, new: str
) -> None:
    for release, words in (("2.11", old), ("2.13", new)):
        findings = found(tmp_path, body, release)
        assert [name for name, _ in findings] == [rule]
        assert findings[0][1].startswith(words)


@pytest.mark.parametrize("release", ["2.11", "2.13"])
@pytest.mark.parametrize("body", ["X.normal_()", "X[0:1] = 1", "X.fill_(2); X.add_(X)"])
def test_what_is_legal_in_both_is_not_reported(tmp_path: Path, body: str, release: str) -> None:
    assert found(tmp_path, body, release) == []


def test_drawing_beside_the_capture_is_a_fault_of_old_torch_alone(tmp_path: Path) -> None:
    body = "with torch.cuda.stream(torch.cuda.Stream()): X.normal_()"
    assert [rule for rule, _ in found(tmp_path, body, "2.11")] == ["rng_outside_capture"]
    assert found(tmp_path, body, "2.13") == []
