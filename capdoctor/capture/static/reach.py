"""Follow calls from the roots: which functions of a tree a capture may run, and how surely."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capdoctor.capture.static.summary import Call, FileSummary, FunctionSummary, Root

_ROOT_SURE: dict[Root, int] = {
    "captured": 3,
    "forward": 3,
    "operator": 3,
    "apply": 3,
    "orders_streams": 2,
    "launcher": 2,
    "takes_tensors": 1,
    "named": 1,
}
Key = tuple[str, str]

_HOPS = 6
# Roots only because of how they look: whoever calls them knows better.
_BY_LOOKS: set[Root] = {"takes_tensors", "launcher", "named"}
_ROOT_TEXT: dict[Root, str] = {
    "captured": "it is named as captured",
    "forward": "a forward method",
    "operator": "a registered operator",
    "apply": "a layer's apply method",
    "orders_streams": "its class orders streams by events",
    "launcher": "it launches a kernel",
    "takes_tensors": "a function over tensors",
    "named": "its file was named",
}


@dataclass(frozen=True, slots=True)
class Reached:
    """How surely a capture runs a function (3 to 1), and through what."""

    sure: int
    seldom: bool
    why: str


class Tree:
    """All files of a scan, with their functions by name."""

    def __init__(self, files: Iterable[FileSummary]) -> None:
        self.files = {file.module: file for file in files}
        self.functions = {
            (file.module, function.name): function
            for file in self.files.values()
            for function in file.functions
        }

    def resolve(self, call: Call, module: str) -> tuple[str, str] | None:
        """Give the (module, name) that the call means, or None outside the tree."""
        kind, _, name = call.target.partition(":")
        if kind == "local":
            return (module, name) if (module, name) in self.functions else None
        if kind == "self":
            cls, _, method = name.partition(".")
            return self._method(module, cls, method)
        return self._dotted(call.target)

    def _method(self, module: str, cls: str, name: str, depth: int = 0) -> tuple[str, str] | None:
        key = (module, f"{cls}.{name}")
        if key in self.functions:
            return key
        file = self.files.get(module)
        if file is None or depth > _HOPS:
            return None
        for base in file.bases.get(cls, ()):
            home, base_name = self._class(file, base)
            found = self._method(home, base_name, name, depth + 1) if home else None
            if found is not None:
                return found
        return None

    def _class(self, file: FileSummary, name: str) -> tuple[str, str]:
        if name in file.bases:
            return file.module, name
        home, _, last = file.imports.get(name, "").rpartition(".")
        return home, last

    def _dotted(self, dotted: str) -> tuple[str, str] | None:
        """Look a dotted name up, through the re-exports of packages."""
        for _ in range(_HOPS):
            module, _, name = dotted.rpartition(".")
            if (module, name) in self.functions:
                return module, name
            file = self.files.get(module)
            if file is None or name not in file.imports or file.imports[name] == dotted:
                return None
            dotted = file.imports[name]
        return None


def reach(tree: Tree) -> dict[tuple[str, str], Reached]:
    """Give every function that a capture may run, with the surest way to it."""
    found: dict[tuple[str, str], Reached] = {}
    queue: deque[tuple[tuple[str, str], Reached]] = deque(_roots(tree))
    while queue:
        key, reached = queue.popleft()
        if not _better(reached, found.get(key)):
            continue
        found[key] = reached
        queue.extend(_onwards(tree, key, reached))
    return found


def _roots(tree: Tree) -> Iterator[tuple[tuple[str, str], Reached]]:
    called, offline_only = _called(tree)
    for key, function in tree.functions.items():
        root = function.root or ("named" if _is_named(tree, key) else None)
        if root is None or function.blocked or (root in _BY_LOOKS and key in offline_only):
            continue
        # A function that this tree calls is reached through its callers, or seldom; a private one
        # that a tree of several files does not call is dead.
        known = key in called or (key[1].startswith("_") and len(tree.files) > 1)
        seldom = function.seldom or (root in {"takes_tensors", "named"} and known)
        yield key, Reached(_ROOT_SURE[root], seldom, _ROOT_TEXT[root])


def _is_named(tree: Tree, key: tuple[str, str]) -> bool:
    """Say whether the user named the function's very file, and nothing encloses the function."""
    outer = key[1].rpartition(".")[0]
    return len(tree.files) == 1 and (key[0], outer) not in tree.functions


def _called(tree: Tree) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Give the functions that the tree calls, and those that only offline code calls."""
    called: set[tuple[str, str]] = set()
    online: set[tuple[str, str]] = set()
    for (module, name), function in tree.functions.items():
        for call in function.calls:
            target = tree.resolve(call, module)
            if target is not None and target != (module, name):
                called.add(target)
                if not function.blocked:
                    online.add(target)
    return called, called - online


def _better(new: Reached, old: Reached | None) -> bool:
    return old is None or (new.sure - 2 * new.seldom) > (old.sure - 2 * old.seldom)


def _onwards(
    tree: Tree, key: tuple[str, str], reached: Reached
) -> Iterator[tuple[tuple[str, str], Reached]]:
    origin: FunctionSummary = tree.functions[key]
    for call in origin.calls:
        target = tree.resolve(call, key[0])
        if target is None or target == key or tree.functions[target].blocked:
            continue
        callee = tree.functions[target]
        seldom = reached.seldom or call.seldom or callee.seldom
        why = reached.why if reached.why.startswith("called from") else f"called from {key[1]}"
        yield target, Reached(reached.sure, seldom, why)
