"""The names that one function sees, and what is known of each."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from capdoctor.capture.static import values
from capdoctor.capture.static.modules import ClassFacts, Function, ModuleFacts, annotated
from capdoctor.capture.static.values import Place, Value


@dataclass
class Scope:
    """Local values, and the module and class around them."""

    module: ModuleFacts
    cls: ClassFacts | None = None
    names: dict[str, Value] = field(default_factory=dict)
    default_place: Place = "host"
    returns: dict[str, Value] = field(default_factory=dict)

    def fork(self) -> Scope:
        """Give a copy for one of two paths."""
        return Scope(self.module, self.cls, dict(self.names), self.default_place, self.returns)

    def merge(self, *others: Scope) -> None:
        """Keep what holds on all of the paths that meet here."""
        first, *rest = others
        self.names = dict(first.names)
        for other in rest:
            for name in self.names.keys() | other.names.keys():
                one, two = self.names.get(name), other.names.get(name)
                self.names[name] = (
                    values.join(one, two) if one and two else one or two or values.UNKNOWN
                )

    def attribute(self, owner: Value, name: str) -> Value:
        """Give a field of ``self`` or of a local of a class of this module."""
        facts = self.module.classes.get(owner.cls)
        for _ in range(5):
            if facts is None:
                break
            if name in facts.fields:
                return facts.fields[name]
            facts = next(
                (self.module.classes[b] for b in facts.bases if b in self.module.classes), None
            )
        return values.UNKNOWN


def optional_parameters(function: Function) -> frozenset[str]:
    """Give the parameters that may be None, by their default or their annotation."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip(reversed(positional), reversed(arguments.defaults), strict=False))
    defaults |= {
        argument: default
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    found = {arg.arg for arg, default in defaults.items() if ast.unparse(default) == "None"}
    for argument in [*positional, *arguments.kwonlyargs]:
        written = ast.unparse(argument.annotation) if argument.annotation else ""
        if "None" in written or "Optional" in written:
            found.add(argument.arg)
    return frozenset(found)


def enter(function: Function, outer: Scope) -> Scope:
    """Give the scope in which the function's body starts."""
    scope = outer.fork()
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        value = annotated(argument.annotation, argument.arg, scope.module)
        scope.names[argument.arg] = replace(value, origin=argument.arg)
    positional = [*arguments.posonlyargs, *arguments.args]
    if outer.cls is not None and positional and positional[0].arg in {"self", "cls"}:
        scope.names[positional[0].arg] = Value(cls=outer.cls.name)
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            scope.names[extra.arg] = values.SEQUENCE
    defaults = zip(reversed(positional), reversed(arguments.defaults), strict=False)
    for argument, default in defaults:
        plain = isinstance(default, ast.Constant) and isinstance(default.value, int | float | str)
        if plain and argument.annotation is None:
            scope.names[argument.arg] = values.PYTHON
    return scope
