"""An import goes to its place, extends what fits, and leaves the rest of the list alone."""

from __future__ import annotations

import libcst as cst
import pytest

from capdoctor.vendored_fixes.imports import ensure_import

PATH = "pkg/a/b/mod.py"
NEW = "from pkg.ctx import helper\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("from pkg.ctx import get\n", "from pkg.ctx import get, helper\n", id="extend"),
        pytest.param(
            "from pkg.ctx import zoo\n", "from pkg.ctx import helper, zoo\n", id="extend in front"
        ),
        pytest.param(
            "from pkg.ctx import Klass, CONST\n",
            "from pkg.ctx import Klass, CONST, helper\n",
            id="an unsorted list grows at its end",
        ),
        pytest.param(
            "from pkg.ctx import (\n    a,  # first\n    z,  # last\n)\n",
            "from pkg.ctx import (\n    a,  # first\n    helper,\n    z,  # last\n)\n",
            id="several lines, middle",
        ),
        pytest.param(
            "from pkg.ctx import (\n    a,\n    b,  # last\n)\n",
            "from pkg.ctx import (\n    a,\n    b,  # last\n    helper,\n)\n",
            id="several lines, end",
        ),
        pytest.param(
            "from pkg.ctx import (\n    only\n)\n",
            "from pkg.ctx import (\n    helper,\n    only\n)\n",
            id="several lines, one name, no comma",
        ),
        pytest.param(
            "from pkg.ctx import (\n    a\n)\n",
            "from pkg.ctx import (\n    a,\n    helper\n)\n",
            id="several lines, one name, no comma, end",
        ),
        pytest.param(
            "from pkg.ctx import a, \\\n    b\n",
            "from pkg.ctx import a, \\\n    b, \\\n    helper\n",
            id="a continued line",
        ),
        pytest.param(
            "from ...ctx import get\n", "from ...ctx import get, helper\n", id="a relative import"
        ),
        pytest.param(
            "from ..ctx import get\n",
            "from ..ctx import get\n\n" + NEW,
            id="another relative import",
        ),
        pytest.param(
            "import os\n\nfrom pkg.a import x\nfrom pkg.z import y\n",
            "import os\n\nfrom pkg.a import x\n" + NEW + "from pkg.z import y\n",
            id="between its neighbours",
        ),
        pytest.param(
            "import os\n\n# ours\nfrom pkg.z import y\n",
            "import os\n\n" + NEW + "# ours\nfrom pkg.z import y\n",
            id="first of its group",
        ),
        pytest.param(
            "import os\n\nimport pkg.envs as envs\nfrom pkg import ops\n",
            "import os\n\nimport pkg.envs as envs\nfrom pkg import ops\n" + NEW,
            id="plain imports come first",
        ),
        pytest.param("import os\n\nx = 1\n", "import os\n\n" + NEW + "\nx = 1\n", id="a new group"),
        pytest.param(
            '"""Doc."""\nfrom __future__ import annotations\n\nx = 1\n',
            '"""Doc."""\nfrom __future__ import annotations\n\n' + NEW + "\nx = 1\n",
            id="behind the future",
        ),
        pytest.param(
            '"""Doc."""\n\nx = 1\n', '"""Doc."""\n\n' + NEW + "\nx = 1\n", id="behind a docstring"
        ),
        pytest.param("x = 1\n", NEW + "x = 1\n", id="no imports at all"),
        pytest.param(
            "from typing import TYPE_CHECKING\n"
            "\nif TYPE_CHECKING:\n    from pkg.ctx import helper\n",
            "from typing import TYPE_CHECKING\n\n"
            + NEW
            + "\nif TYPE_CHECKING:\n    from pkg.ctx import helper\n",
            id="for type checkers only does not count",
        ),
        pytest.param(
            "from pkg.ctx import *\n", "from pkg.ctx import *\n" + NEW, id="a star is not extended"
        ),
        pytest.param(
            "from pkg.ctx import helper as h\n",
            "from pkg.ctx import helper as h, helper\n",
            id="another name for it",
        ),
        pytest.param(NEW, NEW, id="already there"),
        pytest.param(
            "def f():\n    from pkg.ctx import helper\n",
            NEW + "def f():\n    from pkg.ctx import helper\n",
            id="in a function does not count",
        ),
    ],
)
def test_an_import_is_made_available(before: str, after: str) -> None:
    module = ensure_import(cst.parse_module(before), PATH, "pkg.ctx", "helper")
    assert module.code == after
    again = ensure_import(module, PATH, "pkg.ctx", "helper")
    assert again.code == after
    compile(after, PATH, "exec")
