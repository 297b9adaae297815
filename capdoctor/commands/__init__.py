"""One thin file a verb: options in, one call, one answer shown."""

from __future__ import annotations

import sys

import typer


def new_app(*, context: dict[str, object] | None = None, **options: object) -> typer.Typer:
    """Give the Typer app of one verb, with the same habits as every other verb's."""
    settings: dict[str, object] = {"help_option_names": ["-h", "--help"], **(context or {})}
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        context_settings=settings,
        **options,  # type: ignore[arg-type]
    )
