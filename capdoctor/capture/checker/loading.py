"""Load the module of a target, and pick the functions that are to be captured."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from capdoctor.capture.checker.target import Target
from capdoctor.errors import CannotDo, UsageError

_PREFIX = "captured"


@contextmanager
def loaded(target: Target) -> Iterator[ModuleType]:
    """Run the module's body and give the module; forget it afterwards.

    Raises:
        CannotDo: its body raises.
    """
    name = _module_name(target)
    hidden = sys.modules.get(name)
    folder = str((target.path or Path()).absolute().parent) if target.path else str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield _run_body(target)
    finally:
        sys.path.remove(folder)
        if hidden is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = hidden


def _module_name(target: Target) -> str:
    if target.path is None:
        return target.module or ""
    package = []
    folder = target.path.absolute().parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        package.append(folder.name)
        folder = folder.parent
    return ".".join([*reversed(package), target.path.stem])


def _run_body(target: Target) -> ModuleType:
    try:
        if target.path is None:
            return importlib.import_module(target.module or "")
        return _from_file(target.path, _module_name(target))
    except ModuleNotFoundError as error:
        hint = f"install it, or give --stub {(error.name or '').partition('.')[0]}"
        text = f"{target.text} imports {error.name}, which is not installed"
        raise CannotDo(text, hint) from error
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise CannotDo(
            f"the body of {target.text} raises {type(error).__name__}: {error}",
            "run the file in Python first; capdoctor runs it in the same way",
        ) from error


def _from_file(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CannotDo(f"{path} cannot be loaded as a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if "." in name:
        importlib.import_module(name.rpartition(".")[0])
    spec.loader.exec_module(module)
    return module


def functions_of(module: ModuleType, target: Target) -> dict[str, Any]:
    """Give the functions to be captured, by name.

    Raises:
        CannotDo: there is none of that name, or no ``captured…`` function.
    """
    if target.function is not None:
        found: Any = module
        for part in target.function.split("."):
            found = getattr(found, part, None)
        if not callable(found):
            raise CannotDo(f"{target.text}: there is no function {target.function}")
        return {target.function: found}
    own = {
        name: value
        for name, value in vars(module).items()
        if name.startswith(_PREFIX) and callable(value)
    }
    if not own:
        raise CannotDo(
            f"{target.text} has no function whose name begins with {_PREFIX!r}",
            f"name one: {target.text}::FUNCTION",
        )
    return own


def call_arguments(name: str, function: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Give the arguments that the function takes out of those given.

    Raises:
        UsageError: one that it needs is missing, or none of the functions takes a given one.
    """
    parameters = _parameters(function)
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    taken = {key: value for key, value in given.items() if takes_all or key in parameters}
    needed = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    missing = [key for key in needed if key not in taken]
    if missing:
        example = f"--arg {missing[0]}=float32[8,16]@cuda"
        raise UsageError(f"{name} needs {', '.join(missing)}", f"give each one: {example}")
    return taken


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    """Give the parameters; any, where a builtin does not tell its own."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {"given": inspect.Parameter("given", inspect.Parameter.VAR_KEYWORD)}


def call(function: Any, arguments: dict[str, Any]) -> Any:
    """Call the function, positional-only parameters included; run what it gives to its end."""
    parameters = _parameters(function)
    positional = [
        arguments[p.name]
        for p in parameters.values()
        if p.kind is p.POSITIONAL_ONLY and p.name in arguments
    ]
    named = {
        key: value
        for key, value in arguments.items()
        if key not in parameters or parameters[key].kind is not inspect.Parameter.POSITIONAL_ONLY
    }
    return _finished(function(*positional, **named))


def _finished(result: Any) -> Any:
    """Run a coroutine or a generator: until then nothing of its body has happened."""
    if inspect.iscoroutine(result):
        return asyncio.run(result)
    if inspect.isasyncgen(result):
        return asyncio.run(_items(result))
    return list(result) if inspect.isgenerator(result) else result


async def _items(generator: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in generator]
