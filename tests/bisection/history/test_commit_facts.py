"""Pull requests out of titles; what a commit changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection.history.commit_facts import changed_files, commit_facts, pull_request
from capdoctor.bisection.history.mirror import open_mirror
from tests.helpers.git_repo import Commit, build_repository


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("[Kernel] make it fast (#1234)", "#1234"),
        ("Merge pull request #77 from someone/branch", "#77"),
        ('Revert "[Core] x (#100)" (#200)', "#200"),
        ("fix #55 in passing", None),
        ("no number at all", None),
        ("ends in (#12) but not quite", None),
        ("trailing space (#9) ", "#9"),
    ],
)
def test_the_pull_request_is_in_the_title(title: str, wanted: str | None) -> None:
    assert pull_request(title) == wanted


def test_a_merge_request_is_in_the_body() -> None:
    assert pull_request("Merge branch 'x'", "\nSee merge request group/project!42\n") == "!42"


def test_facts_and_files_of_a_commit(tmp_path: Path) -> None:
    commits = [
        Commit({"a.py": "x" * 200, "b.py": "1"}, "first"),
        Commit({"a.py": None, "c.py": "x" * 200, "strange\tname": "1"}, "move [it] (#3)"),
    ]
    shas = build_repository(tmp_path / "repo", commits, checkout=False)
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    facts = commit_facts(mirror, shas[1])
    assert (facts.title, facts.pr, facts.parents) == ("move [it] (#3)", "#3", (shas[0],))
    assert facts.author_date.startswith("2023-11-14T23:13:20")
    assert set(changed_files(mirror, shas[1])) == {"a.py", "c.py", "strange\tname"}
    assert set(changed_files(mirror, shas[0])) == {"a.py", "b.py"}
