"""Make a released vLLM vulnerable again: take the guards of the sparse-MLA fix out of its files.

Stand-alone (standard library and LibCST), so that a script on a GPU machine can load it::

    python vulnerable_vllm.py /path/to/site-packages
"""

from __future__ import annotations

import sys
from pathlib import Path

import libcst as cst

HELPER = "in_piecewise_cudagraph"
GUARDS = {
    "vllm/v1/attention/backends/mla/index_group.py": 2,
    "vllm/v1/hisparse/runtime.py": 1,
}


def take_guards_out(tree: Path) -> list[Path]:
    """Change the files below ``tree`` (the folder that holds ``vllm/``) and give them.

    Raises:
        ValueError: a file does not hold the guards that vLLM 0.30 and later have.
    """
    changed = []
    for name, expected in GUARDS.items():
        path = tree / name
        if path.is_file():
            source, found = without_guards(path.read_bytes())
            if found != expected:
                raise ValueError(f"{path}: {found} guards, not {expected}")
            path.write_bytes(source)
            changed.append(path)
    if not changed:
        raise ValueError(f"{tree} holds none of {', '.join(GUARDS)}")
    return changed


def without_guards(source: bytes) -> tuple[bytes, int]:
    """Give a file without its guards and without the helper's import, and how many there were."""
    remover = _Remover()
    module = cst.parse_module(source).visit(remover)
    return module.bytes, remover.found


def _asks(node: cst.CSTNode) -> bool:
    return (
        isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == HELPER
    )


class _Remover(cst.CSTTransformer):
    def __init__(self) -> None:
        super().__init__()
        self.found = 0

    def leave_BooleanOperation(  # noqa: N802
        self, original_node: cst.BooleanOperation, updated_node: cst.BooleanOperation
    ) -> cst.BaseExpression:
        del original_node
        right = updated_node.right
        if isinstance(right, cst.UnaryOperation) and _asks(right.expression):
            self.found += 1
            return updated_node.left
        return updated_node

    def leave_If(  # noqa: N802
        self, original_node: cst.If, updated_node: cst.If
    ) -> cst.If | cst.RemovalSentinel:
        del original_node
        if _asks(updated_node.test) and updated_node.orelse is None:
            self.found += 1
            return cst.RemoveFromParent()
        return updated_node

    def leave_ImportFrom(  # noqa: N802
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.RemovalSentinel:
        del original_node
        if isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        kept = [a for a in updated_node.names if cst.ensure_type(a.name, cst.Name).value != HELPER]
        if not kept:
            return cst.RemoveFromParent()
        if len(kept) < len(updated_node.names):
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return updated_node.with_changes(names=kept)
        return updated_node


if __name__ == "__main__":
    for file in take_guards_out(Path(sys.argv[1])):
        sys.stdout.write(f"{file}\n")
