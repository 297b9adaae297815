"""Turn suspicions into candidates: how sure the value is, times how sure the way to it is."""

from __future__ import annotations

from collections.abc import Iterator

from capdoctor.capture.static.callers import Callers
from capdoctor.capture.static.reach import Key, Reached, Tree, reach
from capdoctor.capture.static.summary import FunctionSummary, Suspicion
from capdoctor.capture.static.tables import rules
from capdoctor.capture.static.values import ASSUMED, INFERRED
from capdoctor.model import Candidate, Certainty

_ORDER: dict[Certainty, int] = {"likely": 0, "possible": 1, "weak": 2}
_VALUE_TEXT = ("by its name", "by annotation", "by inference")
_SURE_WAY = 2


def candidates(tree: Tree) -> list[Candidate]:
    """Give every candidate of the tree, surest first, then by file and line."""
    callers = Callers.of(tree)
    found = {
        (item.file, item.line, item.rule): item
        for key, reached in reach(tree).items()
        for item in _of_function(callers, key, reached)
    }
    return sorted(found.values(), key=lambda c: (_ORDER[c.certainty], c.file, c.line, c.rule))


def _of_function(callers: Callers, key: Key, reached: Reached) -> Iterator[Candidate]:
    module, name = key
    tree = callers.tree
    function = tree.functions[key]
    for suspicion in function.suspicions:
        if callers.rule_out(key, suspicion):
            continue
        rule = rules()[suspicion.rule]
        yield Candidate(
            rule=rule.id,
            file=tree.files[module].path,
            line=suspicion.line,
            function=name,
            operation=suspicion.operation,
            certainty=certainty(suspicion, function, reached),
            message=rule.what,
            why=f"{_VALUE_TEXT[suspicion.sure]}; {reached.why}",
            legal_way=rule.instead,
            confirmed_by=rule.confirmed_by,
        )


def certainty(suspicion: Suspicion, function: FunctionSummary, reached: Reached) -> Certainty:
    """Grade one candidate: likely, possible or weak."""
    seldom = suspicion.seldom or function.seldom or reached.seldom
    if seldom or suspicion.sure < ASSUMED:
        return "weak"
    if reached.sure > _SURE_WAY or (suspicion.sure >= INFERRED and reached.sure == _SURE_WAY):
        return "likely"
    return "possible"
