"""How many GPUs an engine takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.engines.gpus import memory
from capdoctor.engines.gpus.needed import ALL, gpus_needed
from capdoctor.model import EngineSpec
from tests.engines.support import make_fake_python


@pytest.fixture
def with_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "DRIVER_NODES", (tmp_path,))


def test_a_machine_without_gpus_has_nothing_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "DRIVER_NODES", ())
    assert gpus_needed(EngineSpec("embedded", "demo/clean", device="cuda")) is None


@pytest.mark.usefixtures("with_driver")
def test_the_virtual_device_and_a_cpu_engine_take_no_gpu(tmp_path: Path) -> None:
    assert gpus_needed(EngineSpec("embedded", "demo/clean")) is None
    assert gpus_needed(EngineSpec("embedded", "demo/clean", device="cuda")) == 1
    cuda = make_fake_python(tmp_path)
    cpu = cuda.with_name("cpu-python")
    cpu.write_text(cuda.read_text().replace("cuda 13.0", "cpu"))
    cpu.chmod(0o755)
    assert gpus_needed(EngineSpec("vllm", "m", python=cpu)) is None
    assert gpus_needed(EngineSpec("vllm", "m", python=cuda)) == 1


@pytest.mark.usefixtures("with_driver")
def test_every_rank_needs_a_gpu(tmp_path: Path) -> None:
    python = make_fake_python(tmp_path)
    spec = EngineSpec("vllm", "m", python=python, tensor_parallel_size=2)
    assert gpus_needed(spec) == 2
    arguments = {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}
    assert gpus_needed(EngineSpec("vllm", "m", python=python, engine_args=arguments)) == 4


@pytest.mark.usefixtures("with_driver")
@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ("-tp 2", 2),
        ("-tp=2", 2),
        ("--tensor-parallel-size 4", 4),
        ("--tensor_parallel_size=4 --max-model-len 128", 4),
        ("--tensor-parallel-size 2 -tp 8", 8),
        ("-tp 2 -pp 2 -dp 2", 8),
        ("--prefill-context-parallel-size 2", 2),
        ("--decode-context-parallel-size 2 -tp 2", 2),
        ("-tp", 1),
        ("-tp two", 1),
        ("--nnodes 1 -tp 2", 2),
        ("--distributed-executor-backend mp -tp 2", 2),
        ("--served-model-name -tp", 1),
        ("--nnodes 2 -tp 16", ALL),
        ("--distributed-executor-backend ray -tp 16", ALL),
        ("-dp 4 -dpl 1", ALL),
    ],
)
def test_what_stands_after_the_two_dashes_counts(tmp_path: Path, words: str, ranks: int) -> None:
    python = make_fake_python(tmp_path)
    spec = EngineSpec("vllm", "m", python=python, extra_args=tuple(words.split()))
    assert gpus_needed(spec) == ranks


@pytest.mark.usefixtures("with_driver")
def test_the_last_word_is_that_of_the_command_line(tmp_path: Path) -> None:
    python = make_fake_python(tmp_path)
    spec = EngineSpec(
        "vllm",
        "m",
        python=python,
        engine_args={"tensor_parallel_size": 8, "distributed_executor_backend": None},
        tensor_parallel_size=4,
        extra_args=("-tp", "2"),
    )
    assert gpus_needed(spec) == 2
