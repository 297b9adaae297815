"""What the callers in a tree say about a function: which of its parameters are what."""

from __future__ import annotations

from dataclasses import dataclass, field

from capdoctor.capture.static.reach import Key, Tree
from capdoctor.capture.static.summary import Call, Root, Suspicion

# Whoever calls these is outside the tree: an engine, torch, the user.
_CALLED_FROM_OUTSIDE: set[Root | None] = {"captured", "forward", "operator", "apply"}


@dataclass
class Callers:
    """The calls of every function of a tree, by the function."""

    tree: Tree
    calls: dict[Key, list[Call]] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: Tree) -> Callers:
        """Collect the calls of a tree."""
        found = cls(tree)
        for (module, _), function in tree.functions.items():
            for call in function.calls:
                target = tree.resolve(call, module)
                if target is not None:
                    found.calls.setdefault(target, []).append(call)
        return found

    def rule_out(self, key: Key, suspicion: Suspicion) -> bool:
        """Say whether every caller makes the suspected line harmless or dead."""
        function, calls = self.tree.functions[key], self.calls.get(key, [])
        if function.root in _CALLED_FROM_OUTSIDE or not calls:
            return False
        if any(not call.exact for call in calls):
            return False
        parameters = function.parameters
        if suspicion.default_of and all(
            _has(call.given, suspicion.default_of, parameters, call) for call in calls
        ):
            return True
        return bool(suspicion.origin) and all(
            _has(call.on_host, suspicion.origin, parameters, call) for call in calls
        )


def _has(
    arguments: frozenset[int | str], name: str, parameters: tuple[str, ...], call: Call
) -> bool:
    if name in arguments:
        return True
    bound = bool(parameters) and parameters[0] in {"self", "cls"}
    through_instance = bound and call.target.startswith("self:")
    position = parameters.index(name) if name in parameters else -1
    return position >= 0 and (position - through_instance) in arguments
