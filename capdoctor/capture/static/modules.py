"""What a module defines: imports, classes with the types of their fields, return types."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from capdoctor.capture.static import values
from capdoctor.capture.static.nodes import nodes_of
from capdoctor.capture.static.tables import matches
from capdoctor.capture.static.values import Place, Value

Function = ast.FunctionDef | ast.AsyncFunctionDef

_PYTHON_TYPES = {"int", "float", "bool", "str", "bytes", "torch.dtype", "torch.Size"}
_SEQUENCES = {"list", "List", "Sequence", "set", "dict", "Iterable", "Dict"}
_TUPLES = {"tuple", "Tuple"}


@dataclass
class ClassFacts:
    """One class: its bases as written, the values of its fields, its methods."""

    name: str
    bases: tuple[str, ...]
    fields: dict[str, Value] = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)


@dataclass
class ModuleFacts:
    """One module: names it imports (to dotted names), its classes and functions."""

    name: str
    imports: dict[str, str] = field(default_factory=dict)
    classes: dict[str, ClassFacts] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    registered: set[str] = field(default_factory=set)

    def dotted(self, node: ast.expr) -> str:
        """Give ``torch.cuda.synchronize`` for the expression, imports resolved; else ''."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self.imports.get(node.id, node.id))
        return ".".join(reversed(parts))


def read_module(tree: ast.Module, name: str, *, is_package: bool) -> ModuleFacts:
    """Collect what the module defines at its top level, and what its functions import."""
    facts = ModuleFacts(name)
    package = name if is_package else name.rpartition(".")[0]
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                facts.imports[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            for alias in node.names:
                facts.imports[alias.asname or alias.name] = f"{base}.{alias.name}"
        elif isinstance(node, ast.ClassDef):
            facts.classes[node.name] = _read_class(node, facts)
        elif isinstance(node, ast.Call):
            _note_registration(node, facts)
    for statement in _flat(tree.body):
        if isinstance(statement, Function):
            facts.functions[statement.name] = statement
    return facts


def _flat(body: Iterable[ast.stmt]) -> Iterable[ast.stmt]:
    """Give the statements of a body, those under ``if`` and ``try`` included."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _flat([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _flat(
                [*node.body, *node.orelse, *(s for h in node.handlers for s in h.body)]
            )


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


def _note_registration(node: ast.Call, facts: ModuleFacts) -> None:
    if not matches("operator_registration", facts.dotted(node.func)):
        return
    for argument in [
        *node.args,
        *(word.value for word in node.keywords if word.arg != "fake_impl"),
    ]:
        if isinstance(argument, ast.Name):
            facts.registered.add(argument.id)


def _read_class(node: ast.ClassDef, facts: ModuleFacts) -> ClassFacts:
    bases = tuple(ast.unparse(base).split("[")[0] for base in node.bases)
    found = ClassFacts(node.name, bases)
    for item in _flat(node.body):
        if isinstance(item, Function):
            found.methods[item.name] = item
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found.fields[item.target.id] = annotated(item.annotation, item.target.id, facts)
    return found


def annotated(annotation: ast.expr | None, name: str, facts: ModuleFacts) -> Value:
    """Give the value of a name with this annotation; tensors are assumed on the device."""
    if annotation is None:
        return (
            values.tensor("host", values.ASSUMED) if matches("host_name", name) else values.UNKNOWN
        )
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return annotated(ast.parse(annotation.value, mode="eval").body, name, facts)
        except SyntaxError:
            return values.UNKNOWN
    if isinstance(annotation, ast.BinOp):
        return _union([annotation.left, annotation.right], name, facts)
    if isinstance(annotation, ast.Subscript):
        return _generic(annotation, name, facts)
    return _plain_type(ast.unparse(annotation), name, facts)


def _union(parts: list[ast.expr], name: str, facts: ModuleFacts) -> Value:
    known = [annotated(part, name, facts) for part in parts if ast.unparse(part) != "None"]
    return known[0] if len(known) == 1 else values.UNKNOWN


def _generic(annotation: ast.Subscript, name: str, facts: ModuleFacts) -> Value:
    outer = ast.unparse(annotation.value).rpartition(".")[2]
    inner = annotation.slice
    if outer in {"Optional", "Annotated", "Final", "ClassVar"}:
        first = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
        return annotated(first, name, facts)
    if outer == "Union" and isinstance(inner, ast.Tuple):
        return _union(inner.elts, name, facts)
    if outer in _TUPLES:
        return values.TUPLE
    return values.SEQUENCE if outer in _SEQUENCES else values.UNKNOWN


def _plain_type(text: str, name: str, facts: ModuleFacts) -> Value:  # noqa: PLR0911 - cases
    last = text.rpartition(".")[2]
    if last in {"Tensor", "Parameter", "Int", "Float"} and text not in {"Int", "Float"}:
        place: Place = "host" if matches("host_name", name) else "device"
        return values.tensor(place, values.ASSUMED)
    if text == "torch.device":
        return Value(kind="device", place="device", sure=values.ASSUMED)
    if text in _PYTHON_TYPES:
        return values.PYTHON
    if last == "ndarray":
        return values.NUMPY
    if last in _SEQUENCES:
        return values.SEQUENCE
    if last in {"Event", "Stream"} and text.startswith("torch"):
        return Value(kind="event" if last == "Event" else "stream", sure=values.INFERRED)
    return Value(cls=text) if text in facts.classes or text in facts.imports else values.UNKNOWN
