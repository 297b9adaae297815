"""What the embedded engine is told, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines import embedded
from capdoctor.engines.embedded.settings import MODES, Settings, settings_for
from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import EngineSpec, Json


def _spec(model: str = "demo/clean", **changes: object) -> EngineSpec:
    return EngineSpec("embedded", model, **changes)  # type: ignore[arg-type]


def test_a_demo_is_shown_by_its_short_path() -> None:
    settings = settings_for(_spec("demo/sparse-mla"))
    assert settings.shown == "demo/sparse_mla.py"
    assert Path(settings.file).is_file()


def test_only_the_memory_demo_has_a_budget() -> None:
    budgets = {d.name: settings_for(_spec(f"demo/{d.name}")).memory for d in embedded.list_demos()}
    assert {name for name, memory in budgets.items() if memory} == {"oom"}


def test_a_budget_can_be_asked_for() -> None:
    arguments: dict[str, Json] = {"memory_budget_bytes": 1 << 20}
    assert settings_for(_spec(engine_args=arguments)).memory == 1 << 20


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_may_be_nested_as_vllm_nests_it(mode: str) -> None:
    arguments: dict[str, Json] = {"compilation_config": {"cudagraph_mode": mode, "mode": 0}}
    assert settings_for(_spec(engine_args=arguments)).mode == mode


def test_sizes_are_sorted_and_unique() -> None:
    arguments: dict[str, Json] = {"cudagraph_capture_sizes": [8, 1, 8]}
    assert settings_for(_spec(engine_args=arguments)).sizes == (1, 8)


def test_what_users_pass_to_every_engine_is_accepted() -> None:
    arguments: dict[str, Json] = {"max_num_seqs": 8, "gpu_memory_utilization": 0.5}
    assert settings_for(_spec(engine_args=arguments)).mode == "FULL_AND_PIECEWISE"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "demo/nonsense"}, "no demo 'nonsense'"),
        ({"engine_args": {"cudagraph_mode": "SOME"}}, "no cudagraph mode 'SOME'"),
        ({"engine_args": {"cudagraph_capture_sizes": 4}}, "must be a list"),
        ({"engine_args": {"cudagraph_capture_sizes": [0]}}, "no positive number"),
        ({"engine_args": {"cudagraph_capture_sizes": [True]}}, "no positive number"),
        ({"engine_args": {"kv_cache_memory_bytes": -5}}, "no positive number"),
        ({"engine_args": {"kv_cache_memory_bytes": "x"}}, "no positive number"),
        ({"engine_args": {"bananas": 1}}, "no argument 'bananas'"),
        ({"engine_args": {"compilation_config": "full"}}, "must be a JSON object"),
        ({"engine_args": {"enforce_eager": True, "cudagraph_mode": "FULL"}}, "contradict"),
        ({"as_torch": "2.11", "device": "cuda"}, "contradict"),
        ({"as_torch": "latest"}, "not a torch version"),
        ({"extra_args": ("--port", "1")}, "takes no '--port'"),
        ({"tensor_parallel_size": 2}, "one device"),
    ],
)
def test_contradictions_are_usage_errors(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        settings_for(_spec(**changes))  # type: ignore[arg-type]
    assert caught.value.hint


def test_a_mistyped_demo_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        settings_for(_spec("demo/sparse_mla"))
    assert caught.value.hint == "Did you mean demo/sparse-mla?"


def test_a_missing_file_and_a_folder_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(CannotDo, match="no file"):
        settings_for(_spec(str(tmp_path / "none.py")))
    with pytest.raises(CannotDo, match="is a folder"):
        settings_for(_spec(str(tmp_path)))


def test_a_source_folder_is_where_the_file_is_taken_from(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("")
    settings = settings_for(_spec("model.py", source=tmp_path))
    assert settings.file == str((tmp_path / "model.py").resolve())
    assert settings.shown == "model.py"


def test_the_command_runs_the_child_with_its_settings(tmp_path: Path) -> None:
    command = embedded.command(_spec("demo/oom"), tmp_path)
    assert command[1:3] == ["-m", "capdoctor.engines.embedded.main"]
    written = Settings.from_json(json.loads(Path(command[3]).read_text("utf-8")))
    assert written == settings_for(_spec("demo/oom"))


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(CannotDo, match="cannot be written"):
        embedded.command(_spec(), tmp_path / "missing")


@given(
    st.builds(
        Settings,
        model=st.text(),
        file=st.text(),
        shown=st.text(),
        as_torch=st.none() | st.just("2.11"),
        mode=st.sampled_from(MODES),
        sizes=st.lists(st.integers(1, 512), max_size=4).map(tuple),
        memory=st.none() | st.integers(1),
    )
)
def test_settings_survive_json(settings: Settings) -> None:
    assert Settings.from_json(json.loads(json.dumps(settings.as_json()))) == settings


def test_demos_are_listed_without_torch() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from capdoctor.engines.embedded.demo_list import list_demos;"
        "assert len(list_demos()) == 11; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
