"""Pickles of device tensors: storages are copied to the host on the way out, and back on loading.

As torch does it: the place of a storage is written beside its bytes (``cuda:0``), and a file that
holds such a storage can only be read where there is such a device.
"""

from __future__ import annotations

import threading
from typing import Any

from torch import serialization

from capdoctor.capture.patches import Patches
from capdoctor.capture.session import Session


def install(patches: Patches, session: Session) -> None:
    """Replace how torch's pickles name and restore the place of a storage."""
    plain_tag = serialization.location_tag
    plain_restore = serialization.default_restore_location

    def location_tag(storage: Any) -> Any:
        untyped = getattr(storage, "_untyped_storage", storage)
        if untyped._cdata not in session.tags.cuda:  # noqa: SLF001
            return plain_tag(storage)
        _judge(session, "pickle")
        return "cuda:0"

    def restore(storage: Any, location: str) -> Any:
        if not location.startswith("cuda"):
            return plain_restore(storage, location)  # type: ignore[no-untyped-call]
        _judge(session, "unpickle")
        untyped = getattr(storage, "_untyped_storage", storage)
        session.tags.mark_storage(untyped)
        return storage

    patches.set(serialization, "location_tag", location_tag)
    patches.set(serialization, "default_restore_location", restore)


def _judge(session: Session, operation: str) -> None:
    """Both ways are blocking copies from or to pageable memory."""
    if session.capturing():
        session.forbid("pageable_copy", operation)
    else:
        session.judge(session.machine.unsafe(threading.get_ident(), "blocking_copy"), operation)
