"""The pytest plugin: run tests under the rules of stream capture, on a CPU.

``@pytest.mark.capture_legal`` checks one test, ``--capture-legal`` a whole suite. The body of a
checked test runs inside a capture of the virtual device. What the test itself writes (making
inputs, comparing results) is its own affair; what the code under test does must be legal, or the
test fails. Nothing of torch is imported until a test is to be checked.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from capdoctor.capture.device import VirtualDevice
    from capdoctor.model import Finding, Frame

_MARK = "capture_legal"
_MARK_HELP = (
    "capture_legal(own_lines=False): fail when the code under test does what a captured stream"
    " forbids; own_lines=True counts the test's own lines too"
)
_RUNNER = ("pluggy/", "_pytest/", "pytest/")
_DEVICE = pytest.StashKey["VirtualDevice"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("capdoctor", "stream capture")
    group.addoption(
        "--capture-legal",
        action="store_true",
        help="check every test: cuda is a virtual device that keeps the rules of stream capture",
    )
    group.addoption(
        "--capture-as-torch",
        metavar="X.Y",
        help="the torch whose rules and error texts are followed (default: the installed one)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARK_HELP)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Turn the device on before collection: a test module may make tensors, or ask for a GPU."""
    if session.config.getoption("--capture-legal"):
        device = _new_device(session.config)
        device.__enter__()
        session.config.stash[_DEVICE] = device


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn it off."""
    device = session.config.stash.get(_DEVICE, None)
    if device is not None:
        del session.config.stash[_DEVICE]
        device.__exit__(None, None, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Have the device on for a marked test's fixtures too."""
    if _DEVICE in item.config.stash or item.get_closest_marker(_MARK) is None:
        return (yield)
    with _new_device(item.config) as device:
        item.config.stash[_DEVICE] = device
        try:
            return (yield)
        finally:
            del item.config.stash[_DEVICE]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run the body inside a capture, then fail for what was illegal in it."""
    device = item.config.stash.get(_DEVICE, None)
    if device is None:
        return (yield)
    import torch

    from capdoctor.capture.stacks import user_stack

    outside, before = user_stack(), len(device.findings)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            result = yield
    except BaseException:
        _attach(item, _relevant(item, device, before, outside))
        raise
    found = _relevant(item, device, before, outside)
    if found:
        pytest.fail(_text(found), pytrace=False)
    return result


def _new_device(config: pytest.Config) -> VirtualDevice:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise pytest.UsageError("capture_legal needs torch: install capdoctor[embedded]")
    from capdoctor.capture.device import VirtualDevice
    from capdoctor.errors import UsageError

    try:
        return VirtualDevice(as_torch=config.getoption("--capture-as-torch"), stop_at_first=False)
    except UsageError as error:
        raise pytest.UsageError(f"--capture-as-torch: {error.sentence}") from error


def _relevant(
    item: pytest.Item, device: VirtualDevice, before: int, outside: tuple[Frame, ...]
) -> list[Finding]:
    """Give the findings of this test that count, each place once."""
    from capdoctor.capture.stacks import short_path

    marker = item.get_closest_marker(_MARK)
    own_lines = marker is not None and bool(marker.kwargs.get("own_lines"))
    own_file = short_path(str(item.path))
    found: dict[tuple[str, str, int], Finding] = {}
    for finding in device.findings[before:]:
        inside = _inside(finding, outside)
        if inside and not own_lines and _is_tests(inside[-1].file, own_file):
            continue
        at_end = replace(finding, file=own_file, line=_line(item), function=item.name)
        told = finding if inside else at_end
        found.setdefault((told.rule, told.file, told.line), told)
    return list(found.values())


def _inside(finding: Finding, outside: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Give the frames of the test's body; none for what only shows at the capture's end."""
    common = 0
    for ours, theirs in zip(outside, finding.stack, strict=False):
        if ours != theirs:
            break
        common += 1
    inside = finding.stack[common:]
    body = [frame for frame in inside if not frame.file.startswith(_RUNNER)]
    return inside if body else ()


def _line(item: pytest.Item) -> int:
    """Give the 1-based line where the test begins."""
    return (item.location[1] or 0) + 1


def _is_tests(file: str, own_file: str) -> bool:
    return file == own_file or file.endswith("conftest.py")


def _attach(item: pytest.Item, found: list[Finding]) -> None:
    """Show findings beside another failure."""
    if found:
        item.add_report_section("call", "capture_legal", _text(found))


def _text(found: list[Finding]) -> str:
    count = len(found)
    head = f"{count} operation{'s are' if count > 1 else ' is'} illegal in a stream capture"
    return "\n".join([head, *(line for finding in found for line in _lines(finding))])


def _lines(finding: Finding) -> list[str]:
    raised: Any = finding.would_raise
    code = f" ({raised.code})" if raised.code is not None else ""
    lines = [
        f"{finding.file}:{finding.line}: in {finding.function}: {finding.operation}",
        f"    would raise {raised.type}: {raised.message.splitlines()[0]}{code}",
    ]
    return [*lines, f"    instead: {finding.legal_way}"] if finding.legal_way else lines
