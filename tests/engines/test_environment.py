"""The environment of an engine process."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.engines.environment import engine_environment, telling
from capdoctor.engines.tracer_plugin import Tracing


def make(
    base: dict[str, str],
    *,
    offline: bool = True,
    python_path: tuple[Path, ...] = (),
    tracing: Tracing | None = None,
) -> dict[str, str]:
    return engine_environment(
        base,
        run_id="abc",
        tmpdir=Path("/tmp/x"),
        caches=Path("/run/caches"),
        driver_log=Path("/run/driver.log"),
        offline=offline,
        python_path=python_path,
        tracing=tracing,
    )


def test_a_run_is_offline_quiet_and_keeps_its_caches_to_itself() -> None:
    made = make({"PATH": "/bin"})
    assert made["PATH"] == "/bin"
    assert made["HF_HUB_OFFLINE"] == made["VLLM_NO_USAGE_STATS"] == "1"
    assert made["VLLM_CACHE_ROOT"] == "/run/caches/vllm"
    assert made["TORCHINDUCTOR_CACHE_DIR"] == "/run/caches/inductor"
    assert made["CUDA_LOG_FILE"] == made["AMD_LOG_LEVEL_FILE"] == "/run/driver.log"


def test_a_hub_model_is_not_cut_off_from_the_hub() -> None:
    assert "HF_HUB_OFFLINE" not in make({}, offline=False)
    assert make({"HF_HUB_OFFLINE": "1"}, offline=False)["HF_HUB_OFFLINE"] == "1"


def test_the_user_wins_but_not_over_the_folder_the_marker_and_the_overlay() -> None:
    base = {"HF_HUB_OFFLINE": "0", "TMPDIR": "/long", "CAPDOCTOR_RUN": "1", "PYTHONPATH": "/mine"}
    made = make(base, python_path=(Path("/over"),))
    assert made["HF_HUB_OFFLINE"] == "0"
    assert made["TMPDIR"] == "/tmp/x"
    assert made["CAPDOCTOR_RUN"] == "abc"
    assert made["PYTHONPATH"] == "/over:/mine"
    assert make({}, python_path=(Path("/over"),))["PYTHONPATH"] == "/over"
    assert "PYTHONPATH" not in make({})


def test_only_what_tells_is_written_down_and_no_secret() -> None:
    shown = telling(
        {
            "VLLM_USE_V2_MODEL_RUNNER": "1",
            "HF_TOKEN": "hf_x",
            "VLLM_API_KEY": "k",
            "SSH_AUTH_SOCK": "s",
            "HOME": "/root",
            "ROCR_VISIBLE_DEVICES": "0",
        }
    )
    assert shown == {
        "HF_TOKEN": "<hidden>",
        "ROCR_VISIBLE_DEVICES": "0",
        "VLLM_API_KEY": "<hidden>",
        "VLLM_USE_V2_MODEL_RUNNER": "1",
    }


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        (None, None),
        ("a", "a,capdoctor_tracer"),
        ("a,b", "a,b,capdoctor_tracer"),
        ("", "capdoctor_tracer"),
        ("capdoctor_tracer,a", "capdoctor_tracer,a"),
    ],
)
def test_the_tracer_joins_the_plugins_that_may_be_loaded(
    given: str | None, becomes: str | None
) -> None:
    base = {} if given is None else {"VLLM_PLUGINS": given}
    made = make(base, tracing=Tracing(Path("/run/trace"), Path("/run/plugin")))
    assert made.get("VLLM_PLUGINS") == becomes
    assert made["CAPDOCTOR_TRACE_DIR"] == "/run/trace"


def test_the_tracer_comes_after_the_overlay_and_before_the_users_own() -> None:
    tracing = Tracing(Path("/run/trace"), Path("/run/plugin"))
    base = {"PYTHONPATH": "/mine"}
    made = make(base, python_path=(Path("/over"),), tracing=tracing)
    assert made["PYTHONPATH"] == "/over:/run/plugin:/mine"
    assert make({}, tracing=tracing)["PYTHONPATH"] == "/run/plugin"


def test_an_engine_that_is_not_traced_knows_of_no_tracer() -> None:
    made = make({"CAPDOCTOR_TRACE_DIR": "/somebody/elses", "VLLM_PLUGINS": "a"})
    assert "CAPDOCTOR_TRACE_DIR" not in made
    assert made["VLLM_PLUGINS"] == "a"


def test_the_embedded_engine_needs_no_plugin() -> None:
    made = make({"VLLM_PLUGINS": ""}, tracing=Tracing(Path("/run/trace")))
    assert made["CAPDOCTOR_TRACE_DIR"] == "/run/trace"
    assert made["VLLM_PLUGINS"] == ""
    assert "PYTHONPATH" not in made
