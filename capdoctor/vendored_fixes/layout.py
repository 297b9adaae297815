"""A file as LibCST's top-level statements, each with the text that it came from."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from capdoctor.errors import CannotDo

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_LINE_END = re.compile(r"\r\n|\r|\n")
_FIRST_LINE_END = re.compile(rb"[ \t\f]*(\r\n|\r|\n)")
_LAST_LINE_END = re.compile(r"(\r\n|\r|\n)\Z")


@dataclass(frozen=True)
class Layout:
    """``texts`` holds the code of each statement of ``module``, by identity.

    ``mark`` is the file's byte order mark, which may be empty; ``head`` and ``foot`` are what
    stands before the first and after the last statement, ``tail`` the blank lines at the end.
    """

    module: cst.Module
    mark: bytes
    head: str
    foot: str
    tail: bytes
    texts: dict[Statement, str]

    @classmethod
    def of(cls, path: str, data: bytes) -> Layout:
        """Parse a file.

        Raises:
            CannotDo: LibCST cannot read it, or would not give it back byte for byte.
        """
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        tail = _blank_tail(data)
        try:
            module = cst.parse_module(data[len(mark) : len(data) - len(tail)])
        except (cst.ParserSyntaxError, UnicodeDecodeError, RecursionError) as error:
            raise CannotDo(
                f"LibCST cannot read {path}: {error}.", "Nothing was written."
            ) from error
        texts = {statement: module.code_for_node(statement) for statement in module.body}
        head, foot = (_code(module, lines) for lines in (module.header, module.footer))
        layout = cls(module, mark, head, foot, tail, texts)
        if layout.dump(module) != data:
            raise CannotDo(f"LibCST does not give {path} back unchanged.", "Nothing was written.")
        return layout

    def statements(self) -> Iterator[tuple[Statement, int, int]]:
        """Give each top-level statement with its first and last line; remarks above count."""
        line = 1 + _lines(self.head)
        for statement, text in self.texts.items():
            after = line + _lines(text)
            yield statement, line, max(line, after - 1)
            line = after

    def dump(self, module: cst.Module) -> bytes:
        """Give the bytes of a changed module; statements that it kept are not written anew."""
        code = "".join(self.texts.get(s) or module.code_for_node(s) for s in module.body)
        text = self.head + code + self.foot
        if not self.module.has_trailing_newline:
            text = _LAST_LINE_END.sub("", text)
        return self.mark + text.encode(self.module.encoding) + self.tail


def _code(module: cst.Module, lines: Sequence[cst.EmptyLine]) -> str:
    return "".join(module.code_for_node(line) for line in lines)


def _blank_tail(data: bytes) -> bytes:
    """Give the blank lines at the end: LibCST drops some of them if others hold white space."""
    blank = data[len(data.rstrip(b" \t\f\r\n")) :]
    end = _FIRST_LINE_END.match(blank)
    return blank[end.end() :] if end else b""


def _lines(text: str) -> int:
    return len(_LINE_END.findall(text))
