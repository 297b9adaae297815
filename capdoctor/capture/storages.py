"""Untyped storages of the device: reading one from Python is a copy to the host too."""

from __future__ import annotations

import threading
from typing import Any

import torch

from capdoctor.capture.patches import Patches, replace_all
from capdoctor.capture.session import Session


def install(patches: Patches, session: Session) -> None:
    """Replace the methods of ``torch.UntypedStorage`` that move or read bytes."""
    methods = StorageMethods(session)

    def bound(name: str) -> Any:
        method = getattr(methods, name)

        def call(storage: Any, *args: Any) -> Any:
            return method(storage, *args)

        return call

    names = {"cpu": "cpu", "clone": "clone", "tolist": "tolist", "__getitem__": "item"}
    kind = torch.UntypedStorage
    replace_all(patches, kind, {torch_name: bound(name) for torch_name, name in names.items()})


class StorageMethods:
    """The replacements; storages of the host go on to torch."""

    def __init__(self, session: Session) -> None:
        kind: Any = torch.UntypedStorage
        self.session = session
        self._cpu, self._clone = kind.cpu, kind.clone
        self._tolist, self._getitem = kind.tolist, kind.__getitem__

    def _on_device(self, storage: Any) -> bool:
        return self.session.active and storage._cdata in self.session.tags.cuda  # noqa: SLF001

    def _copied(self, storage: Any) -> Any:
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():  # noqa: SLF001
            return self._clone(storage)

    def cpu(self, storage: Any) -> Any:
        """Copy to pageable host memory."""
        if not self._on_device(storage):
            return self._cpu(storage)
        session, name = self.session, "UntypedStorage.cpu"
        if session.capturing():
            session.forbid("pageable_copy", name)
        else:
            session.judge(session.machine.unsafe(threading.get_ident(), "blocking_copy"), name)
        return self._copied(storage)

    def clone(self, storage: Any) -> Any:
        """Copy on the device."""
        if not self._on_device(storage):
            return self._clone(storage)
        self.session.launch("UntypedStorage.clone")
        copy = self._copied(storage)
        self.session.tags.mark_storage(copy)
        return copy

    def tolist(self, storage: Any) -> Any:
        """Read every byte."""
        if self._on_device(storage):
            self.session.read_host("host_read", "UntypedStorage.tolist")
        return self._tolist(storage)

    def item(self, storage: Any, index: Any) -> Any:
        """Read one byte, or make a part."""
        if self._on_device(storage):
            self.session.read_host("host_read", "UntypedStorage.__getitem__")
        return self._getitem(storage, index)
