"""Rules of one's own: a folder in the configuration, ``--rules``, and what is broken in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capdoctor.diagnosis import diagnose, store
from capdoctor.errors import UsageError

RULE = """
id = "acme-1"
class = "config_invalid"
title = "Our flag is wrong"
cause = "The house rule for nodes of the acme cluster was not kept."
[known]
url = "https://tracker.example/acme/1"
[[when]]
text = ["acme widget"]
[[workarounds]]
do = "read the house rules"
cost = "five minutes"
"""
LOG = "INFO 08-12 10:00:01 [core.py:93] Initializing a V1 LLM engine (v0.14.1) with config: x\n"
LOG += "ValueError: the acme widget is missing\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "a.log"
    file.write_text(LOG)
    return file


def rules_folder(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


def test_rule_folder_is_used(tmp_path: Path, log: Path) -> None:
    diagnosis = diagnose(log, rules=[rules_folder(tmp_path, acme=RULE)])
    assert diagnosis.crash_class == "config_invalid"
    assert diagnosis.known_issue is not None
    assert diagnosis.known_issue.url == "https://tracker.example/acme/1"
    assert diagnosis.workarounds[0].do == "read the house rules"


def test_single_rule_file_is_used(tmp_path: Path, log: Path) -> None:
    file = rules_folder(tmp_path, acme=RULE) / "acme.toml"
    assert diagnose(log, rules=[file]).crash_class == "config_invalid"


def test_users_own_folder_is_used(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config/capdoctor/rules"
    folder.mkdir(parents=True)
    (folder / "acme.toml").write_text(RULE)
    assert diagnose(log).crash_class == "config_invalid"


def test_without_the_rule_the_error_is_unknown(log: Path) -> None:
    assert diagnose(log).crash_class == "unknown"


def test_rule_with_a_bundled_id_replaces_it(tmp_path: Path) -> None:
    text = RULE.replace('"acme-1"', '"vllm-41848"')
    rules = store.load([rules_folder(tmp_path, mine=text)])
    assert [one.title for one in rules.signatures if one.id == "vllm-41848"] == [
        "Our flag is wrong"
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("id = ", "Invalid"),
        ("id = 'x'\n", "class is missing"),
        (RULE.replace("config_invalid", "configs_invalid"), "not in the taxonomy"),
        (RULE.replace("[[when]]", "[[wenn]]"), "wenn is not a field"),
        (RULE.replace('text = ["acme widget"]', "text = 3"), "text must be"),
        (RULE.replace('text = ["acme widget"]', 'regex = "("'), "regex"),
        (RULE.replace('text = ["acme widget"]', ""), "fit everything"),
        (RULE.replace('text = ["acme widget"]', 'stage = "lunch"'), "lunch"),
        (RULE.replace('text = ["acme widget"]', 'platform = "tpu"'), "tpu"),
        (RULE.replace('text = ["acme widget"]', 'versions = { vllm = "new" }'), "version range"),
        (RULE.replace('text = ["acme widget"]', 'code = "900"'), "code must be"),
        (RULE.replace("https://", "ftp://"), "https"),
        (RULE.replace('cost = "five minutes"', ""), "cost is missing"),
        (RULE + "\x00", "rule file"),
    ],
)
def test_broken_rule_is_skipped_and_named(
    tmp_path: Path, log: Path, text: str, complaint: str
) -> None:
    folder = rules_folder(tmp_path, broken=text, good=RULE.replace("acme-1", "acme-2"))
    diagnosis = diagnose(log, rules=[folder])
    assert diagnosis.crash_class == "config_invalid"  # the good one beside it still works
    [warning] = diagnosis.warnings
    assert "broken.toml" in warning
    assert complaint in warning


def test_rule_that_is_not_text_is_skipped(tmp_path: Path, log: Path) -> None:
    folder = rules_folder(tmp_path)
    (folder / "b.toml").write_bytes(b"\xff\xfe\x00")
    assert "b.toml" in diagnose(log, rules=[folder]).warnings[0]


def test_folder_that_does_not_exist_is_a_usage_error(tmp_path: Path, log: Path) -> None:
    with pytest.raises(UsageError, match="no rules folder"):
        diagnose(log, rules=[tmp_path / "none"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop to another user")
def test_a_rules_folder_without_permission_is_skipped_with_its_name(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "capdoctor/rules").mkdir(parents=True)
    code = (
        "import os; from capdoctor.diagnosis import schema, store\n"
        "store.load(); os.setgid(65534); os.setuid(65534)\n"
        f"os.environ['XDG_CONFIG_HOME'] = {str(closed)!r}\n"
        "print(store.load().warnings)"
    )
    closed.chmod(0o700)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "rules skipped: Permission denied" in done.stdout, done.stderr


def test_an_unknown_home_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    assert store.load().warnings == ()
