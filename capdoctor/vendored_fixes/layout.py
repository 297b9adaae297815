"""A file as LibCST's top-level statements, each with the text that it came from."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from capdoctor.errors import CannotDo

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_LINE_END = re.compile(r"\r\n|\r|\n")
_LAST_LINE_END = re.compile(r"(\r\n|\r|\n)\Z")


@dataclass(frozen=True)
class Layout:
    """``texts`` holds the code of each statement of ``module``, by identity.

    ``mark`` is the file's byte order mark, which may be empty; ``head`` and ``foot`` are what
    stands before the first and after the last statement; ``is_open`` says that the last
    statement has no line end.
    """

    module: cst.Module
    mark: bytes
    head: str
    foot: str
    texts: dict[Statement, str]
    is_open: bool

    @classmethod
    def of(cls, path: str, data: bytes) -> Layout:
        """Parse a file.

        Raises:
            CannotDo: LibCST cannot read it, or would not give it back byte for byte.
        """
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        try:
            module = cst.parse_module(data[len(mark) :])
            whole = data[len(mark) :].decode(module.encoding)
        except (cst.ParserSyntaxError, UnicodeDecodeError, RecursionError) as error:
            sentence = f"LibCST cannot read {path}: {error}."
            raise CannotDo(sentence, "Nothing was written.") from error
        texts = {statement: module.code_for_node(statement) for statement in module.body}
        head = "".join(module.code_for_node(line) for line in module.header)
        written = head + "".join(texts.values())
        is_open = _LAST_LINE_END.sub("", written) == whole
        # The foot is the file's own text: LibCST drops blank lines there in front of white space.
        foot = "" if is_open else whole[len(written) :]
        if not (is_open or whole.startswith(written)) or not _only_remarks(foot):
            raise CannotDo(f"LibCST does not give {path} back unchanged.", "Nothing was written.")
        return cls(module, mark, head, foot, texts, is_open)

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
        if self.is_open:
            text = _LAST_LINE_END.sub("", text)
        return self.mark + text.encode(self.module.encoding)


def _only_remarks(text: str) -> bool:
    lines = (line.strip() for line in _LINE_END.split(text))
    return all(not line or line.startswith("#") for line in lines)


def _lines(text: str) -> int:
    return len(_LINE_END.findall(text))
