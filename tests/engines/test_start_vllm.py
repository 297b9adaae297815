"""The runner for the target Python, with a vLLM that only writes its arguments down."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capdoctor.engines.in_target import describe_python, start_vllm

INIT = """
import json, os
class LLM:
    def __init__(self, model, hf_token=None, **kwargs):
        if kwargs.get("seed") == 666:
            raise ValueError("the engine says no")
        kwargs["model"] = model
        with open(os.environ["SAW"], "w") as file:
            json.dump(kwargs, file, default=repr)
__version__ = "{version}"
"""
ARGS = """
import dataclasses
from typing import Any
@dataclasses.dataclass
class EngineArgs:
    model: str = "default"
    load_format: str = "auto"
    seed: int = 0
    max_model_len: Any = None
    enforce_eager: bool = False
    gpu_memory_utilization: float = 0.9
    compilation_config: Any = None
    {extra}
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model", default="default")
        parser.add_argument("--load-format", default="auto")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--max-model-len", type=int)
        parser.add_argument("--enforce-eager", action="store_true")
        parser.add_argument("--gpu-memory-utilization", type=float, default=0.9)
        parser.add_argument("--compilation-config", "-cc", type=Config)
        return parser
class Config:
    def __init__(self, text): self.cudagraph_mode = None
    def __repr__(self): return f"Config({{self.cudagraph_mode}})"
"""
# As vLLM's own, it takes dotted options apart before it parses.
PARSER = """
import argparse, json
class FlexibleArgumentParser(argparse.ArgumentParser):
    def parse_args(self, args):
        plain = []
        for word in args:
            name, dot, rest = word.partition(".")
            key, _, value = rest.partition("=")
            dotted = name.startswith("-") and dot
            plain += [name, json.dumps({key: value})] if dotted else [word]
        return super().parse_args(plain)
"""
SERVER = """
from vllm.engine.arg_utils import EngineArgs
def make_arg_parser(parser):
    parser.add_argument("--port", type=int, default=8000)
    return EngineArgs.add_cli_args(parser)
"""
PLATFORM = "class P:\n    def is_cpu(self): return {cpu}\ncurrent_platform = P()\n"
CONFIG = "class CUDAGraphMode:\n    def __class_getitem__(cls, name): return 'mode ' + name\n"

OLD = ("vllm.utils", "vllm.entrypoints.openai.cli_args", "")
MIDDLE = ("vllm.utils.argparse_utils", "vllm.entrypoints.launchers.cli_args", "")
NEW = (
    "vllm.utils.argparse_utils",
    "vllm.entrypoints.common.cli_args",
    "kv_cache_memory_bytes: Any = None",
)


def make_vllm(
    folder: Path, layout: tuple[str, str, str] = NEW, *, cpu: bool = False, version: str = "0.33.0"
) -> Path:
    """Lay out a package whose parts lie where one of the releases has them."""
    parser, server, extra = layout
    files = {
        "vllm": INIT.replace("{version}", version),
        "vllm.engine.arg_utils": ARGS.replace("{extra}", extra)
        .replace("{{", "{")
        .replace("}}", "}"),
        "vllm.platforms": PLATFORM.format(cpu=cpu),
        "vllm.config": CONFIG,
        parser: PARSER,
        server: SERVER,
    }
    for name, text in files.items():
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            package = folder.joinpath(*parts[:depth])
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
        (folder.joinpath(*parts) / "__init__.py").write_text(text)
    return folder / "vllm"


def start(folder: Path, **spec: Any) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Run the runner; give its exit code, its report and what the engine was given."""
    files = [folder / name for name in ("spec.json", "report.json", "saw.json")]
    files[0].write_text(json.dumps({"model": "m", **spec}))
    done = subprocess.run(
        [sys.executable, start_vllm.__file__, *map(str, files[:2])],
        env={"PYTHONPATH": str(folder), "SAW": str(files[2]), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        check=False,
    )
    report = json.loads(files[1].read_text()) if files[1].exists() else {}
    saw = json.loads(files[2].read_text()) if files[2].exists() else {}
    return done.returncode, report, saw


@pytest.mark.parametrize("layout", [OLD, MIDDLE, NEW], ids=["0.8", "0.32", "0.33"])
def test_arguments_are_read_by_each_releases_own_parser(
    tmp_path: Path, layout: tuple[str, str, str]
) -> None:
    make_vllm(tmp_path, layout)
    argv = ["--port", "8001", "--max-model-len", "512", "--enforce-eager"]
    code, report, saw = start(tmp_path, argv=argv, defaults={"load_format": "dummy"})
    assert code == 0
    assert report["step"] == "ready"
    assert saw == {
        "model": "m",
        "load_format": "dummy",
        "max_model_len": 512,
        "enforce_eager": True,
    }


def test_defaults_that_a_release_does_not_know_are_left_out(tmp_path: Path) -> None:
    make_vllm(tmp_path, OLD)
    defaults = {"kv_cache_memory_bytes": 1, "load_format": "dummy"}
    _, report, saw = start(tmp_path, defaults=defaults)
    assert saw == {"model": "m", "load_format": "dummy"}
    assert report["defaults"] == {"load_format": "dummy"}


def test_what_is_given_wins_over_defaults_and_the_last_word_is_the_command_lines(
    tmp_path: Path,
) -> None:
    make_vllm(tmp_path)
    _, report, saw = start(
        tmp_path,
        defaults={"load_format": "dummy", "seed": 1},
        engine_args={"seed": 2, "hf_token": "x"},
        argv=["--load-format", "auto"],
    )
    assert saw["seed"] == 2
    assert saw["load_format"] == "auto"
    assert report["defaults"] == {}


@pytest.mark.parametrize(
    "spec",
    [
        {"argv": ["--no-such-thing", "1"]},
        {"argv": ["--seed", "no-number"]},
        {"engine_args": {"no_such_argument": 1}},
    ],
)
def test_what_this_vllm_does_not_know_is_refused(tmp_path: Path, spec: dict[str, Any]) -> None:
    make_vllm(tmp_path)
    code, report, saw = start(tmp_path, **spec)
    assert code == start_vllm.REFUSED
    assert report["step"] == "refused"
    assert report["reason"]
    assert saw == {}


@pytest.mark.parametrize("argv", [["-cc.cudagraph_mode=NONE"], ["-cc.mode=0", "--port", "80"]])
def test_what_only_vllms_own_way_to_parse_knows_is_understood(
    tmp_path: Path, argv: list[str]
) -> None:
    """The workarounds that are printed are of this form, and are tried in this way."""
    make_vllm(tmp_path)
    code, report, _ = start(tmp_path, argv=argv)
    assert code == 0
    assert "compilation_config" in report["arguments"]


def test_what_is_given_in_another_spelling_is_no_default_of_ours(tmp_path: Path) -> None:
    make_vllm(tmp_path)
    defaults = {"load_format": "dummy", "max_model_len": 64}
    _, report, _ = start(tmp_path, argv=["--load-format=auto"], defaults=defaults)
    assert report["defaults"] == {"max_model_len": 64}


def test_a_wrong_value_is_refused_in_the_parsers_words(tmp_path: Path) -> None:
    make_vllm(tmp_path)
    _, report, _ = start(tmp_path, argv=["--seed", "soon"])
    assert "argument --seed: invalid int value: 'soon'" in report["reason"]


def test_an_error_of_the_engine_goes_its_own_way(tmp_path: Path) -> None:
    make_vllm(tmp_path)
    code, report, _ = start(tmp_path, engine_args={"seed": 666})
    assert code == 1
    assert report["step"] == "configured"


def test_the_cpu_engine_gets_a_share_that_is_free_unless_the_user_chose(tmp_path: Path) -> None:
    make_vllm(tmp_path, cpu=True)
    _, report, saw = start(tmp_path)
    assert 0 < saw["gpu_memory_utilization"] <= 0.5
    assert "gpu_memory_utilization" in report["defaults"]
    _, report, saw = start(tmp_path, argv=["--gpu-memory-utilization", "0.9"])
    assert saw["gpu_memory_utilization"] == 0.9
    assert report["defaults"] == {}
    _, _, saw = start(tmp_path, engine_args={"kv_cache_memory_bytes": 5})
    assert "gpu_memory_utilization" not in saw


@pytest.mark.parametrize(
    ("mode", "given", "expected"),
    [
        ("EAGER", {}, {"enforce_eager": True}),
        ("FULL", {}, {"enforce_eager": False, "compilation_config": {"cudagraph_mode": "FULL"}}),
        (
            "NONE",
            {"enforce_eager": True, "compilation_config": {"mode": 3, "cudagraph_mode": "FULL"}},
            {
                "enforce_eager": False,
                "compilation_config": {"mode": 3, "cudagraph_mode": "NONE"},
            },
        ),
        (
            "PIECEWISE",
            {"compilation_config": 2},
            {
                "enforce_eager": False,
                "compilation_config": {"mode": 2, "cudagraph_mode": "PIECEWISE"},
            },
        ),
    ],
)
def test_a_graph_mode_wins_over_everything(
    tmp_path: Path, mode: str, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    make_vllm(tmp_path)
    _, _, saw = start(tmp_path, graph_mode=mode, engine_args=given)
    assert saw == {"model": "m", **expected}


def test_a_graph_mode_wins_over_a_config_from_the_command_line(tmp_path: Path) -> None:
    make_vllm(tmp_path)
    _, _, saw = start(tmp_path, graph_mode="FULL", argv=["--compilation-config", "{}"])
    assert saw["compilation_config"] == "Config(mode FULL)"


def test_a_vllm_from_elsewhere_than_the_overlay_is_refused(tmp_path: Path) -> None:
    package = make_vllm(tmp_path)
    code, report, _ = start(tmp_path, expect_package=str(tmp_path / "other/vllm"))
    assert code == start_vllm.REFUSED
    assert "another vllm" in report["reason"]
    assert start(tmp_path, expect_package=str(package))[0] == 0


def test_an_expected_package_of_links_is_told_from_what_it_links_to(tmp_path: Path) -> None:
    installed = make_vllm(tmp_path)
    overlay = tmp_path / "over/vllm"
    overlay.mkdir(parents=True)
    (overlay / "__init__.py").symlink_to(installed / "__init__.py")
    code, _, _ = start(tmp_path, expect_package=str(overlay))
    assert code == start_vllm.REFUSED


@pytest.mark.parametrize("module", [start_vllm, describe_python])
def test_handed_files_keep_to_the_standard_library_and_to_python_3_9(module: Any) -> None:
    text = Path(module.__file__).read_text()
    tree = ast.parse(text, feature_version=(3, 9))
    names = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Match)]
