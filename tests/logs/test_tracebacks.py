"""Tracebacks in every shape that a log has them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import traceback

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.logs import ExceptionNode, LinkKind, Origin, Run, read_text


def run_of(text: str) -> Run:
    (run,) = read_text(textwrap.dedent(text).lstrip("\n")).runs
    return run


def nodes_of(text: str) -> tuple[ExceptionNode, ...]:
    return run_of(text).nodes


def formatted(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause  # noqa: TRY301 - it is raised to have a traceback
    except BaseException as caught:  # noqa: BLE001 - the test wants any
        return caught


def test_cause_and_context_are_links_to_the_earlier_exception() -> None:
    inner = raised(KeyError("size"))
    outer = raised(RuntimeError("no graph"), inner)
    first, second = nodes_of(formatted(outer))
    assert (first.type, first.message) == ("KeyError", "'size'")
    assert second.linked(LinkKind.CAUSE) == first.index
    assert second.frames[-1].function == "raised"
    assert second.frames[-1].code.startswith("raise error from cause")


def test_exception_group_members_point_at_the_group() -> None:
    group = raised(ExceptionGroup("two", [raised(ValueError("a")), ValueError("b")]))
    head, first, second = nodes_of(formatted(group))
    assert head.origin is Origin.GROUP
    assert head.type == "ExceptionGroup"
    assert [first.linked(LinkKind.MEMBER), second.linked(LinkKind.MEMBER)] == [0, 0]
    assert (first.message, second.message) == ("a", "b")
    assert first.frames[-1].function == "raised"


def test_nested_groups_end_where_they_end() -> None:
    inner = ExceptionGroup("inner", [ValueError("deep")])
    group = raised(ExceptionGroup("outer", [inner, KeyError("k")]))
    kinds = [
        (n.type, n.linked(LinkKind.MEMBER))
        for n in nodes_of(formatted(group) + "RuntimeError: after\n")
    ]
    assert kinds == [
        ("ExceptionGroup", None), ("ExceptionGroup", 0), ("ValueError", 1), ("KeyError", 0),
        ("RuntimeError", None),
    ]  # fmt: skip


def test_real_recursion_keeps_both_ends() -> None:
    def down(n: int) -> None:
        down(n + 1)

    try:
        down(0)
    except RecursionError as error:
        (node,) = nodes_of(formatted(error))
    assert node.type == "RecursionError"
    assert node.frames[-1].function == "down"


def test_notes_stay_in_the_message() -> None:
    error = raised(ValueError("first line\nsecond line"))
    error.add_note("a note")
    (node,) = nodes_of(formatted(error))
    assert node.message == "first line\nsecond line\na note"


def test_syntax_error_has_its_place_as_the_last_frame() -> None:
    run = subprocess.run([sys.executable, "-c", "x ="], capture_output=True, text=True, check=False)
    (node,) = nodes_of(run.stderr)
    assert node.type == "SyntaxError"
    assert (node.frames[-1].file, node.frames[-1].line) == ("<string>", 1)


def test_faulthandler_dump_is_a_death_by_signal_with_the_current_threads_frames() -> None:
    code = (
        "import faulthandler, os, signal, threading, time\n"
        "faulthandler.enable()\n"
        "def waits(): time.sleep(9)\n"
        "threading.Thread(target=waits, daemon=True).start()\n"
        "def dies(): os.kill(os.getpid(), signal.SIGSEGV)\n"
        "dies()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (node,) = nodes_of(run.stderr)
    assert (node.origin, node.type) == (Origin.HANDLER, "SIGSEGV")
    assert [f.function for f in node.frames] == ["<module>", "dies"]


def test_frames_of_the_native_crash_handler_are_not_pythons() -> None:
    (node,) = nodes_of("""
        !!!!!!! Segfault encountered !!!!!!!
          File "<unknown>", line 0, in ncclCuMemHostEnable
          File "./Python/ceval.c", line 5047, in _PyEval_EvalFrameDefault
          File "./Objects/call.c", line 90, in _PyFunction_Vectorcall

        (EngineCore pid=3) INFO 11-29 16:18:35 [core.py:1] next
        """)
    assert (node.type, node.origin, node.frames) == ("SIGSEGV", Origin.HANDLER, ())
    assert node.native_frames[0].function == "ncclCuMemHostEnable"
    assert node.error_line == 1


def test_uncaught_cpp_exception_has_type_text_and_frames() -> None:
    (node,) = nodes_of("""
        terminate called after throwing an instance of 'c10::Error'
          what():  CUDA error: invalid argument
        CUDA kernel errors might be asynchronously reported at some other API call.
        Exception raised from c10_cuda_check_implementation at ../CUDAException.cpp:43 (most recent call first):
        frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f10 in /opt/torch/lib/libc10.so)
        frame #1: <unknown function> + 0x1234 (0x7f20 in /opt/vllm/_C.abi3.so)
        """)  # noqa: E501
    assert (node.type, node.origin) == ("c10::Error", Origin.CPP)
    assert node.message.startswith("CUDA error: invalid argument\nCUDA kernel")
    assert [f.path for f in node.native_frames] == ["torch/lib/libc10.so", "vllm/_C.abi3.so"]


def test_frames_under_a_watchdog_line_belong_to_it() -> None:
    run = run_of("""
        [rank1]:[E1203 14:24:02.118233017 ProcessGroupNCCL.cpp:2057] [PG ID 2 PG GUID 3 Rank 1] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered
        [rank1]: frame #0: c10::Error::Error(int) + 0x98 (0x7f10 in /x/libc10.so)
        """)  # noqa: E501
    event = run.events[0]
    assert (event.kind, event.stream.rank) == ("watchdog", 1)
    assert event.message.endswith("an illegal memory access was encountered")
    assert run.nodes == ()


def test_error_line_alone_is_an_exception_without_frames() -> None:
    (node,) = nodes_of("torch.AcceleratorError: CUDA error: invalid argument\n")
    assert (node.origin, node.type) == (Origin.BARE, "torch.AcceleratorError")
    assert node.message == "CUDA error: invalid argument"


def test_log_that_begins_inside_a_traceback_keeps_its_frames() -> None:
    (node,) = nodes_of("""
          File "/x/site-packages/vllm/v1/core.py", line 7, in load
            return f()
        ValueError: bad
        """)
    assert node.truncated_head
    assert node.frames[0].path == "vllm/v1/core.py"
    assert node.error_line == 3


def test_log_that_ends_inside_a_traceback_has_no_type() -> None:
    (node,) = nodes_of('Traceback (most recent call last):\n  File "a.py", line 1, in f\n')
    assert (node.type, node.error_line, node.truncated_tail) == (None, None, True)


def test_warnings_words_and_info_lines_are_no_errors() -> None:
    assert (
        nodes_of("""
        /x/a.py:3: UserWarning: RuntimeError: is only mentioned
        INFO 11-29 16:18:35 [core.py:1] RuntimeError: only told about
        note: this is no exception
        Killed: no
        Error handling is enabled
        """)
        == ()
    )


def test_same_error_many_times_is_counted() -> None:
    one = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x\n\n'
    run = run_of(one * 50)
    assert len(run.nodes) == 3
    assert run.nodes[0].repeats == 48
    assert {n.copy_of for n in run.nodes[1:]} == {0}


def test_interleaved_ranks_give_the_tracebacks_of_each() -> None:
    def worker(rank: int) -> list[str]:
        head = f"(Worker_TP{rank} pid={10 + rank}) ERROR 11-29 16:18:35 [m.py:5] "
        text = formatted(raised(ValueError(f"rank {rank}"))).rstrip().split("\n")
        return [head + line for line in ["WorkerProc hit an exception.", *text]]

    pairs = zip(worker(0), worker(1), strict=True)
    nodes = nodes_of("\n".join(line for pair in pairs for line in pair) + "\n")
    assert sorted((n.stream.rank, n.message) for n in nodes) == [(0, "rank 0"), (1, "rank 1")]
    assert all(n.frames[-1].function == "raised" for n in nodes)


def test_traceback_behind_an_unfinished_progress_bar_is_found() -> None:
    text = (
        "Loading:  27%|##7       | 3/11 [00:00<00:00, 12.3it/s]Traceback (most recent call last):\n"
    )
    (node,) = nodes_of(text + '  File "a.py", line 1, in f\nValueError: x\n')
    assert (node.type, node.truncated_head) == ("ValueError", False)


def test_record_behind_an_unfinished_progress_bar_has_its_process() -> None:
    run = run_of(
        "Capturing CUDA graphs (PIECEWISE):  27%|##  | 3/11 [00:00<00:00, 12it/s]"
        "(Worker_TP1 pid=472) ERROR 11-20 03:14:13 [multiproc_executor.py:1189] ValueError: x\n"
    )
    assert run.nodes[0].stream.name == "Worker_TP1"
    assert run.bars[0].done == 3


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([ValueError, KeyError, RuntimeError, OSError]), min_size=1, max_size=6)
)
def test_any_chain_is_read_back(kinds: list[type[Exception]]) -> None:
    error: BaseException | None = None
    for number, kind in enumerate(kinds):
        error = raised(kind(f"number {number}"), error)
    assert error is not None
    nodes = nodes_of(formatted(error))
    assert [n.type for n in nodes] == [kind.__name__ for kind in kinds]
    assert [n.linked(LinkKind.CAUSE) for n in nodes] == [None, *range(len(kinds) - 1)]


@pytest.mark.parametrize(
    "front", ["(Actor pid=12, ip=10.0.0.1) ", "\x1b[36m(Actor pid=12)\x1b[0m ", ""]
)
def test_record_of_sglang_goes_on_behind_the_prefix_of_ray(front: str) -> None:
    text = (
        "[2025-04-01 23:22:06 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/a.py", line 3, in f\n    foo()\n'
        "RuntimeError: CUDA error: invalid argument\nCUDA kernel errors might\n\n"
    )
    lines = [front + line for line in text.splitlines()]
    other = "(Actor pid=99) [2025-04-01 23:22:06 TP1] Load weight end"
    mixed = [x for line in lines for x in ((other, line) if front else (line,))]
    (node,) = read_text("\n".join(mixed) + "\n").runs[0].nodes
    assert (node.type, len(node.frames), node.stream.name) == ("RuntimeError", 1, "TP0")
    assert node.stream.pid == (12 if front else None)
