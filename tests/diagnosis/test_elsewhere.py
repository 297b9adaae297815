"""A known fault in code that is not the known package's: what may be said of it."""

from __future__ import annotations

import pytest

from capdoctor.diagnosis import diagnose
from capdoctor.model import Diagnosis
from tests.diagnosis.expected import DATA

DEMOS = {
    "sparse-mla": "https://github.com/vllm-project/vllm/issues/56785",
    "fold-indptr": "https://github.com/ROCm/aiter/pull/5202",
}
OWN = {
    "sparse-mla": DATA / "corpus/real-vllm030-h200-sparse-mla.log",
    "fold-indptr": DATA / "corpus/aiter-5202-fold-seqlen-indptr.log",
}


def demo(name: str) -> Diagnosis:
    return diagnose(DATA / f"diagnosis/embedded/{name}.log")


@pytest.mark.parametrize("name", DEMOS)
def test_demo_names_the_report_without_its_version_range(name: str) -> None:
    known = demo(name).known_issue
    assert known is not None
    assert known.url == DEMOS[name]
    assert known.title.startswith("The same fault as one reported for ")
    assert (known.introduced_by, known.fixed_in) == (None, None)


@pytest.mark.parametrize("name", DEMOS)
def test_demo_is_nobodys_package(name: str) -> None:
    diagnosis = demo(name)
    assert diagnosis.component == "other"
    assert not any("upgrade" in workaround.do for workaround in diagnosis.workarounds)


@pytest.mark.parametrize("name", DEMOS)
def test_demo_keeps_the_bundled_fix(name: str) -> None:
    assert demo(name).fix == name


@pytest.mark.parametrize("name", OWN)
def test_the_package_itself_keeps_its_range_and_component(name: str) -> None:
    diagnosis = diagnose(OWN[name])
    assert diagnosis.fix == name
    assert diagnosis.known_issue is not None
    assert diagnosis.known_issue.fixed_in
    assert diagnosis.component == ("vllm" if name == "sparse-mla" else "aiter")


@pytest.mark.parametrize("name", DEMOS)
def test_model_file_of_a_user_is_offered_no_fix_for_a_package(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = (DATA / f"diagnosis/embedded/{name}.log").read_text(encoding="utf-8")
    log = tmp_path_factory.mktemp("user") / "run.log"
    log.write_text(text.replace('"demo/', '"/home/u/models/'), encoding="utf-8")
    diagnosis = diagnose(log)
    assert diagnosis.crash_class == demo(name).crash_class
    assert diagnosis.fix is None
    assert diagnosis.component == "other"
    assert "AITER" not in diagnosis.cause


def test_other_faults_of_a_demo_are_not_vllms() -> None:
    assert demo("oom").component == "other"
