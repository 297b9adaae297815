"""The environment of an engine process."""

from __future__ import annotations

from pathlib import Path

from capdoctor.engines.environment import engine_environment, telling


def make(
    base: dict[str, str], *, offline: bool = True, python_path: Path | None = None
) -> dict[str, str]:
    return engine_environment(
        base,
        run_id="abc",
        tmpdir=Path("/tmp/x"),
        caches=Path("/run/caches"),
        driver_log=Path("/run/driver.log"),
        offline=offline,
        python_path=python_path,
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
    made = make(base, python_path=Path("/over"))
    assert made["HF_HUB_OFFLINE"] == "0"
    assert made["TMPDIR"] == "/tmp/x"
    assert made["CAPDOCTOR_RUN"] == "abc"
    assert made["PYTHONPATH"] == "/over:/mine"
    assert make({}, python_path=Path("/over"))["PYTHONPATH"] == "/over"
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
