"""Both halves or neither: a shape that is not known keeps the whole tree as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor.errors import CannotDo
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.shop import check
from capdoctor.vendored_fixes.targets import find_target
from tests.helpers.fix_cases import Case
from tests.vendored_fixes.conftest import snapshot

FIX = find_fix("sparse-mla")
GROUP = "vllm/v1/attention/backends/mla/index_group.py"
RUNTIME = "vllm/v1/hisparse/runtime.py"
CONTEXT = "vllm/forward_context.py"
HEAD = "class SparseMLAIndexGroup:\n"
NAMELESS = HEAD + (
    "    def mark(self, stream):\n"
    "        self.logical_topk_ready.record(stream)\n"
    "    def use(self):\n"
    "        self.side_stream.wait_event(self.logical_topk_ready)\n"
)
SKIPPED = HEAD + (
    "    def mark(self, stream):\n"
    "        if not in_piecewise_cudagraph():\n"
    "            self.logical_topk_ready.record(stream)\n"
    "    def use(self, compute):\n"
    "        if in_piecewise_cudagraph():\n"
    "            return\n"
    "        self.side_stream.wait_event(self.logical_topk_ready)\n"
)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param({CONTEXT: None}, "has no vllm/forward_context.py", id="no forward context"),
        pytest.param(
            {CONTEXT: "_context = None\ndef get_forward_context(): return _context\n"},
            "does not say in which graph mode",
            id="a context without a mode",
        ),
        pytest.param({GROUP: NAMELESS}, "the compute stream has no name there", id="no stream"),
        pytest.param({GROUP: SKIPPED}, "in a shape that this fix cannot complete", id="skipped"),
    ],
)
def test_a_shape_that_is_not_known_is_refused_and_nothing_is_written(
    make_tree: Callable[..., Path],
    sparse_case: Case,
    change: dict[str, str | None],
    sentence: str,
) -> None:
    site = make_tree(sparse_case)
    (site / "vllm" / "compilation").mkdir()
    (site / "vllm" / "compilation" / "breakable_cudagraph.py").write_text("")
    for name, text in change.items():
        if text is None:
            (site / name).unlink()
        else:
            (site / name).write_text(text)
    target = find_target(str(site), FIX)
    assert check(FIX, target).status_before in {FixStatus.VULNERABLE, FixStatus.PARTLY_FIXED}
    before = snapshot(site)
    with pytest.raises(CannotDo, match=sentence):
        apply(FIX, target)
    assert snapshot(site) == before


def test_the_sites_of_a_race_say_that_it_is_one() -> None:
    from capdoctor.vendored_fixes.sparse_mla.fix import read

    context = "class C:\n    cudagraph_runtime_mode: int = 0\ndef in_piecewise_cudagraph(): ...\n"
    reading = read({CONTEXT: context.encode(), GROUP: SKIPPED.encode()})
    assert reading.status is FixStatus.PARTLY_FIXED
    assert [site.reason for site in reading.sites] == [
        "line 4 does not record in piecewise mode",
        "line 8 in piecewise mode nothing orders this stream: a silent race",
    ]
    assert [site.function for site in reading.sites] == [
        "SparseMLAIndexGroup.mark",
        "SparseMLAIndexGroup.use",
    ]
