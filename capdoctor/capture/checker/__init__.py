"""Run code under the rules of stream capture and collect what a device would refuse."""

from __future__ import annotations

from capdoctor.capture.checker.arguments import Argument, TensorSpec, parse_argument
from capdoctor.capture.checker.operators import parse_operator
from capdoctor.capture.checker.options import CheckOptions
from capdoctor.capture.checker.run import check
from capdoctor.capture.checker.target import Target, parse_target

__all__ = [
    "Argument",
    "CheckOptions",
    "Target",
    "TensorSpec",
    "check",
    "parse_argument",
    "parse_operator",
    "parse_target",
]
