"""An event that goes out of sight: nothing is written, for a wait may be overlooked."""

from __future__ import annotations

import textwrap

import pytest

from capdoctor.errors import CannotDo
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.sparse_mla.fix import read, rewrite

CONTEXT = "vllm/forward_context.py"
GROUP = "vllm/v1/attention/backends/mla/index_group.py"
FORWARD = b"class C:\n    cudagraph_runtime_mode: int = 0\ndef in_piecewise_cudagraph(): ...\n"
TREE = """\
from vllm.utils.torch_utils import current_stream


class SparseMLAIndexGroup:
    logical_topk_ready: object

    def mark(self):
        self.logical_topk_ready.record(current_stream())

    def use(self):
        self.side_stream.wait_event(self.logical_topk_ready)

    def more(self, other, flag):
{more}
"""
OUT_OF_SIGHT = {
    "another attribute": "self._ready = self.logical_topk_ready",
    "a list": "other.append(self.logical_topk_ready)",
    "a display": "self.events = [self.logical_topk_ready, self.physical_topk_ready]",
    "another file's function": "order(self.side_stream, self.logical_topk_ready)",
    "a keyword of another name": "order(event=self.logical_topk_ready)",
    "a bound wait": "wait = self.logical_topk_ready.wait\nwait(self.side_stream)",
    "a wait of the host": "self.logical_topk_ready.synchronize()",
    "a question": "return self.logical_topk_ready.query()",
    "a getter": "return self.logical_topk_ready",
    "a generator": "yield self.logical_topk_ready",
    "a closure": "return lambda: self.logical_topk_ready",
    "an alias": "ready = self.logical_topk_ready\nother.keep(ready)",
    "a choice": "other.keep(self.logical_topk_ready if flag else None)",
}
IN_SIGHT = {
    "a test": "return flag and self.logical_topk_ready is not None",
    "an assertion": "assert self.logical_topk_ready",
    "its own name elsewhere": "other.logical_topk_ready = self.logical_topk_ready",
    "its own keyword": "other.make(logical_topk_ready=self.logical_topk_ready)",
    "its own key": "other.update({'logical_topk_ready': self.logical_topk_ready})",
    "a receiver": "return SparseMLAIndexGroup(self.logical_topk_ready)",
    "a message": "print(f'{self.logical_topk_ready}')",
    "an unused alias": "ready, rest = self.logical_topk_ready, 1",
    "a new event": "self.logical_topk_ready = other.Event()",
    "out of piecewise mode": "if not in_piecewise_cudagraph(): other.keep(self.logical_topk_ready)",
}


def files(more: str) -> dict[str, bytes]:
    body = textwrap.indent(more, "        ")
    return {CONTEXT: FORWARD, GROUP: TREE.format(more=body).encode()}


@pytest.mark.parametrize("more", OUT_OF_SIGHT.values(), ids=OUT_OF_SIGHT.keys())
def test_nothing_is_written_where_the_event_goes_out_of_sight(more: str) -> None:
    tree = files(more)
    assert read(tree).status is FixStatus.VULNERABLE
    with pytest.raises(CannotDo, match=r"index_group\.py line \d+ hands the event on") as error:
        rewrite(tree)
    assert "silent race" in error.value.hint


@pytest.mark.parametrize("more", IN_SIGHT.values(), ids=IN_SIGHT.keys())
def test_ordinary_uses_do_not_stand_in_the_way(more: str) -> None:
    tree = files(more)
    changed = rewrite(tree)
    assert read({**tree, **changed}).status is FixStatus.FIXED


def test_a_receiver_may_live_in_another_file() -> None:
    other = b"def order(stream, logical_topk_ready):\n    ...\n"
    tree = files(OUT_OF_SIGHT["another file's function"])
    assert rewrite({**tree, "vllm/v1/order.py": other})


def test_a_record_that_is_only_handed_on_is_named() -> None:
    tree = files("other.keep(self.logical_topk_ready)")
    tree[GROUP] = tree[GROUP].replace(b".record(current_stream())", b".record")
    reading = read(tree)
    assert reading.status is FixStatus.NOT_APPLICABLE
    assert "line 8 hands it on" in reading.reason
