"""The same change, whatever the file looks like: line ends, tabs, marks, encodings, size."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor import vendored_fixes
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.catalogue import find_fix, load_room
from capdoctor.vendored_fixes.contract import FixInfo
from capdoctor.vendored_fixes.proving import proven_change
from tests.helpers.fix_cases import Case, cases_of

ROOMS = Path(vendored_fixes.__file__).parent
Form = Callable[[bytes], bytes]
# One case for each kind of edit: every case in every form would say nothing more.
TELLING = {
    "both_files_no_helper",
    "busy_branches",
    "guard_without_stand_in",
    "mode_class_for_checkers_only",
    "relative_import",
    "several_statements_a_line",
    "tests_of_every_shape",
    "in_a_class",
    "shared_line",
    "with_remarks",
}
CASES = [
    pytest.param(fix, case, id=f"{fix.room}-{case.path.stem}")
    for fix in map(find_fix, ("sparse-mla", "fold-indptr"))
    for case in cases_of(ROOMS / fix.room)
    if case.path.stem in TELLING
]


def crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def old_mac(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r")


def tabs(data: bytes) -> bytes:
    lines = data.decode().split("\n")
    return "\n".join("\t" * (indent(line) // 4) + line.lstrip(" ") for line in lines).encode()


def indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def marked(data: bytes) -> bytes:
    return codecs.BOM_UTF8 + data


def latin(data: bytes) -> bytes:
    return b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + data


def not_ascii(data: bytes) -> bytes:
    """Text before the code in its own line, so that bytes and characters differ."""
    remark = 'with_name = "größe-模型"; '
    return data.replace(b"    compute", f"    {remark}compute".encode())


def no_final_newline(data: bytes) -> bytes:
    return data.rstrip(b"\n")


def form_feed(data: bytes) -> bytes:
    return data.replace(b"\n\n\n", b"\n\x0c\n\n")


FORMS = [crlf, old_mac, tabs, marked, latin]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize(("fix", "case"), CASES)
def test_the_form_of_a_file_is_kept(fix: FixInfo, case: Case, form: Form) -> None:
    before = {name: form(data) for name, data in case.before.items()}
    changed = proven_change(fix, load_room(fix), before)
    expected = {name: form(data) for name, data in case.after.items()}
    if form is tabs:  # an indent inside parentheses is not always a multiple of four
        changed = {name: untabbed(data) for name, data in changed.items()}
        expected = {name: untabbed(data) for name, data in expected.items()}
    assert changed == expected


@pytest.mark.parametrize(("fix", "case"), CASES)
def test_form_feeds_stay(fix: FixInfo, case: Case) -> None:
    before = {name: form_feed(data) for name, data in case.before.items()}
    for name, data in proven_change(fix, load_room(fix), before).items():
        assert data.count(b"\x0c") == before[name].count(b"\x0c")
        assert data.replace(b"\x0c", b"") == case.after[name]


def untabbed(data: bytes) -> list[str]:
    return data.decode().expandtabs(4).split()


@pytest.mark.parametrize(("fix", "case"), CASES)
def test_columns_count_characters_not_bytes(fix: FixInfo, case: Case) -> None:
    before = {name: not_ascii(data) for name, data in case.before.items()}
    changed = proven_change(fix, load_room(fix), before)
    assert changed.keys() == case.after.keys()


@pytest.mark.parametrize(("fix", "case"), CASES)
def test_a_file_without_a_last_line_end_keeps_it_that_way(fix: FixInfo, case: Case) -> None:
    before = {name: no_final_newline(data) for name, data in case.before.items()}
    changed = proven_change(fix, load_room(fix), before)
    assert all(not data.endswith(b"\n") for data in changed.values())


def test_twenty_thousand_lines_are_no_obstacle(sparse_case: Case) -> None:
    name = "vllm/v1/attention/backends/mla/index_group.py"
    filler = b"".join(b"def f%d(x):\n    return x + %d\n\n\n" % (i, i) for i in range(5000))
    before = {**sparse_case.before, name: sparse_case.before[name] + b"\n\n" + filler}
    fix = find_fix("sparse-mla")
    changed = proven_change(fix, load_room(fix), before)
    assert changed[name] == sparse_case.after[name] + b"\n\n" + filler


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"def logical_topk_ready(:\n", "line 1", id="syntax error"),
        pytest.param(b"# \xff\nlogical_topk_ready = 1\n", "encoding", id="not UTF-8"),
        pytest.param(b"# coding: klingon\nlogical_topk_ready = 1\n", "klingon", id="no such codec"),
        pytest.param(b"logical_topk_ready\0 = 1\n", "null", id="null byte"),
        pytest.param(b"logical_topk_ready = " + b"(" * 999 + b")" * 999, "", id="nested too deep"),
        pytest.param(b"if 1:\n\tx=1\n        logical_topk_ready=2\n", "", id="mixed indents"),
    ],
)
def test_what_python_cannot_read_is_unreadable_with_a_reason(data: bytes, reason: str) -> None:
    name = "vllm/v1/attention/backends/mla/index_group.py"
    reading = load_room(find_fix("sparse-mla")).read({name: data})
    assert reading.status is FixStatus.UNREADABLE
    assert reading.sites[0].file == name
    assert reason in reading.sites[0].reason


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,12}", fullmatch=True)


@settings(max_examples=25, deadline=None)
@given(
    blank=st.lists(st.sampled_from(["\n", "# a remark\n", "\n\n"]), max_size=4),
    fields=st.lists(NAMES, max_size=3, unique=True),
    arguments=st.lists(NAMES, max_size=3, unique=True),
    extra=st.booleans(),
)
def test_other_fields_arguments_and_lines_do_not_matter(
    blank: list[str], fields: list[str], arguments: list[str], extra: bool
) -> None:
    case = next(c for c in cases_of(ROOMS / "sparse_mla") if "both_files" in c.path.name)
    name = "vllm/v1/attention/backends/mla/index_group.py"

    def vary(data: bytes) -> bytes:
        text = data.decode()
        members = "".join(f"    field_{field}: int = 0\n" for field in fields)
        text = text.replace("    has_indexer: bool\n", f"    has_indexer: bool\n{members}")
        more = "".join(f", arg_{argument}: int = 0" for argument in arguments)
        text = text.replace(
            "indices: torch.Tensor) -> None", f"indices: torch.Tensor{more}) -> None"
        )
        text = text.replace("class SparseMLA", "".join(blank) + "class SparseMLA")
        if extra:
            text = text.replace(
                "        if layer_index == 0:\n",
                "        self.n += 1\n        if layer_index == 0:\n",
            )
        return text.replace(
            "@dataclass\n" + "".join(blank), "".join(blank) + "@dataclass\n"
        ).encode()

    fix = find_fix("sparse-mla")
    before = {**case.before, name: vary(case.before[name])}
    changed = proven_change(fix, load_room(fix), before)
    assert changed[name] == vary(case.after[name])
