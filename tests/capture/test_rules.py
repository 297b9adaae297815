"""The tables of rules: complete, consistent, and right about each torch's words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from capdoctor.capture.plans import _table
from capdoctor.capture.rules import driver_errors, rules
from capdoctor.capture.torch_version import in_range, parse_release
from capdoctor.errors import UsageError

RELEASES = [(2, minor) for minor in range(4, 16)]
ROOM = Path(__file__).resolve().parents[2] / "capdoctor" / "capture"


def test_every_row_is_complete() -> None:
    for rule in rules().values():
        assert rule.forbids
        assert rule.why
        assert rule.legal
        assert rule.source.startswith(("measured", "read", "inferred")), rule.id
        assert rule.crash_class.startswith("capture_")
        assert (rule.code is None) == bool(rule.message or rule.id == "out_of_memory")


def test_every_rule_that_the_code_names_is_a_row_and_is_used() -> None:
    text = "".join(path.read_text("utf-8") for path in ROOM.glob("*.py"))
    text += (ROOM / "tables" / "operations.toml").read_text("utf-8")
    quoted = set(re.findall(r'"([a-z_]+)"', text))
    assert set(rules()) - quoted == {"optimizer_not_capturable"}  # torch.optim raises it itself


def test_every_operation_names_a_rule_and_an_operator_of_torch() -> None:
    for name, checks in _table().items():
        assert {check.rule for check in checks} <= set(rules())
        namespace, _, rest = name.partition("::")
        packet = getattr(getattr(torch.ops, namespace), rest.partition(".")[0])
        assert rest.partition(".")[2] in ("", *packet.overloads())


@pytest.mark.parametrize("release", RELEASES)
def test_every_rule_has_words_in_every_release(release: tuple[int, int]) -> None:
    for rule in rules().values():
        text = rule.for_torch(release).text(release, {"call": "seed", "routine": "x", "name": "A"})
        assert "{" not in text.replace("reinterpret_cast", "")
        assert text or rule.id == "out_of_memory"


def test_the_class_of_driver_errors_came_with_2_8() -> None:
    rule = rules()["host_read"]
    assert rule.error_type((2, 7)) == "RuntimeError"
    assert rule.error_type((2, 8)) == "AcceleratorError"


def test_tails_of_driver_errors() -> None:
    rule = rules()["host_read"]
    head = "CUDA error: operation not permitted when stream is capturing\n"
    old, middle, new = (rule.text(r, {}) for r in ((2, 8), (2, 11), (2, 13)))
    assert all(text.startswith(head) for text in (old, middle, new))
    assert "Search for" not in old
    assert "Search for `cudaErrorStreamCaptureUnsupported' in https://docs.nvidia.com" in middle
    assert "CUDA_LAUNCH_BLOCKING=1" in middle
    assert "CUDA_LAUNCH_BLOCKING" not in new
    assert new.endswith("run with CUDA_LOG_FILE=stderr\n")


def test_hip_names_its_own_errors() -> None:
    text = rules()["host_read"].text((2, 11), {}, hip=True)
    assert text.startswith("HIP error: operation not permitted when stream is capturing\n")
    assert "hipErrorStreamCaptureUnsupported" in text
    assert "AMD_SERIALIZE_KERNEL=3" in text
    assert "cudaError" not in text


def test_the_pinned_check_is_torchs_own_since_2_11() -> None:
    rule = rules()["pageable_copy"]
    assert rule.for_torch((2, 10)).code == 900
    assert rule.for_torch((2, 10)).invalidates
    assert rule.for_torch((2, 11)).code is None
    assert not rule.for_torch((2, 11)).invalidates


def test_generator_words_change_with_the_release() -> None:
    rule = rules()["rng_unregistered"]
    assert rule.for_torch((2, 11)).message.startswith("Attempt to increase offset")
    assert rule.for_torch((2, 13)).message.startswith("RNG op during graph capture")
    assert rule.for_torch((2, 14)).legal_anyway


def test_codes_of_the_driver_are_those_of_the_toolkit() -> None:
    assert set(driver_errors()) == {1, 401, *range(900, 909)}


@pytest.mark.parametrize(
    ("text", "release"), [("2.13.0+cpu", (2, 13)), ("2.11", (2, 11)), ("3.0.1a0", (3, 0))]
)
def test_releases_are_read(text: str, release: tuple[int, int]) -> None:
    assert parse_release(text) == release


@pytest.mark.parametrize("text", ["", "latest", "2", "2.x", "v2.11"])
def test_other_text_is_no_release(text: str) -> None:
    with pytest.raises(UsageError):
        parse_release(text)


def test_ranges() -> None:
    assert in_range((2, 10), "2.11")
    assert not in_range((2, 11), "2.11")
    assert in_range((2, 13), ">=2.13")
    assert in_range((2, 13), "2.13..2.14")
    assert not in_range((2, 14), "2.13..2.14")
