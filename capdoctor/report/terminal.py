"""Show a card on a stream: coloured and wrapped on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from capdoctor.report.card import CardLine, Tone

_LABEL_WIDTH = 14
_STYLES: dict[Tone, str] = {
    "bad": "bold red",
    "good": "bold green",
    "plain": "",
    "quiet": "dim",
    "command": "bold cyan",
}


def show_card(lines: Sequence[CardLine], stream: TextIO | None = None) -> None:
    """Write the card to the stream, stdout by default; the text is never read as markup."""
    stream = stream or sys.stdout
    if stream.isatty():
        _show_in_colour(lines, stream)
    else:
        stream.write("".join(f"{_plain(line)}\n" for line in lines))
    stream.flush()


def _plain(line: CardLine) -> str:
    return f"{line.label:<{_LABEL_WIDTH}}{line.text}" if line.label else line.text


def _show_in_colour(lines: Sequence[CardLine], stream: TextIO) -> None:
    # Rich costs some 40 ms, so only a terminal pays for it.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=_LABEL_WIDTH - 1, no_wrap=True)
    grid.add_column(overflow="fold")
    for line in lines:
        text = Text(line.text, style=_STYLES[line.tone])
        if line.label:
            grid.add_row(Text(line.label, style="dim"), text)
        else:
            console.print(text)
    console.print(grid)
