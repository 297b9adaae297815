"""The repository that the tests of the whole loop share."""

from __future__ import annotations

import pytest

from tests.bisection.plain_line import Repo
from tests.helpers.git_repo import build_repository, linear


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    folder = tmp_path_factory.mktemp("line") / "repo"
    return folder, build_repository(folder, linear(64), tags={"v0.1.0": 0})
