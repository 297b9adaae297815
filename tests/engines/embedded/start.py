"""Starts the embedded engine inside the test's own process."""

from __future__ import annotations

import io
from pathlib import Path

from capdoctor.capture.engine_log import EngineLog
from capdoctor.capture.stacks import clean_exception
from capdoctor.engines.embedded.engine import EngineCore
from capdoctor.engines.embedded.settings import Settings, settings_for
from capdoctor.model import EngineSpec, Json


def start(settings: Settings) -> tuple[BaseException | None, str]:
    """Give what the start raised (None: it started) and the log."""
    stream = io.StringIO()
    try:
        EngineCore(settings, EngineLog(stream)).start()
    except Exception as error:  # noqa: BLE001 - the crash is what is looked at
        return clean_exception(error), stream.getvalue()
    return None, stream.getvalue()


def demo_settings(name: str, as_torch: str | None = None, **arguments: Json) -> Settings:
    """The settings of a demo."""
    spec = EngineSpec("embedded", f"demo/{name}", as_torch=as_torch, engine_args=arguments)
    return settings_for(spec)


def edited(settings: Settings, folder: Path, edits: tuple[tuple[str, str], ...]) -> Settings:
    """The same run with a changed copy of the model file; every edit must apply."""
    text = Path(settings.file).read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    file = folder / "model.py"
    file.write_text(text, encoding="utf-8")
    plain = settings.as_json() | {"file": str(file), "shown": "demo/edited.py"}
    return Settings.from_json(plain)
