"""Tensor methods and attributes whose answer depends on the device."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch

from capdoctor.capture import generators
from capdoctor.capture.factories import is_cuda_device
from capdoctor.capture.mixing import MIXING
from capdoctor.capture.moves import move
from capdoctor.capture.session import DEVICE, Session
from capdoctor.capture.transfers import judge_copy, to_device, to_host

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Handler = Callable[[Session, Any, Args, Kwargs], Any]
T = torch.Tensor

_CUDA_TYPES = {
    torch.float32: "FloatTensor", torch.float64: "DoubleTensor", torch.float16: "HalfTensor",
    torch.bfloat16: "BFloat16Tensor", torch.uint8: "ByteTensor", torch.int8: "CharTensor",
    torch.int16: "ShortTensor", torch.int32: "IntTensor", torch.int64: "LongTensor",
    torch.bool: "BoolTensor",
}  # fmt: skip
_BY_TYPE = {name: dtype for dtype, name in _CUDA_TYPES.items()}


def _attribute(on_device: Any) -> Handler:
    def answer(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
        if session.tags.is_cuda(args[0]):
            return on_device
        return func(*args, **kwargs)

    return answer


def _cuda(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    del func
    tensor, *positional = args
    device = kwargs.get("device", positional[0] if positional else None)
    non_blocking = kwargs.get("non_blocking", positional[1] if len(positional) > 1 else False)
    if device is not None and not is_cuda_device(device):
        raise RuntimeError(f"Invalid device, must be cuda device, but got {device}")
    if session.tags.is_cuda(tensor):
        return tensor
    return to_device(session, tensor, "cuda", non_blocking=bool(non_blocking))


def _cpu(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    if not session.tags.is_cuda(args[0]):
        return func(*args, **kwargs)
    return to_host(session, args[0], "cpu")


def _type(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    tensor = args[0]
    wanted = args[1] if len(args) > 1 else kwargs.get("dtype")
    on_device = session.tags.is_cuda(tensor)
    if wanted is None:
        return f"torch.cuda.{_CUDA_TYPES[tensor.dtype]}" if on_device else func(tensor)
    if isinstance(wanted, torch.dtype):
        return func(tensor, wanted)
    name = wanted if isinstance(wanted, str) else f"{wanted.__module__}.{wanted.__name__}"
    dtype = _BY_TYPE.get(name.rpartition(".")[2])
    if dtype is None:
        return func(*args, **kwargs)
    device = "cuda" if name.startswith("torch.cuda.") else "cpu"
    return (
        tensor.to(dtype)
        if device == "cuda" and on_device
        else _moved(session, tensor, device, dtype)
    )


def _moved(session: Session, tensor: torch.Tensor, device: str, dtype: torch.dtype) -> Any:
    if device == "cuda":
        return to_device(session, tensor, "type", dtype=dtype)
    if session.tags.is_cuda(tensor):
        return to_host(session, tensor, "type", dtype=dtype)
    return tensor.to(dtype)


def _numpy(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """An array cannot look at device memory, inside a capture or not; ``force`` copies."""
    if session.tags.is_cuda(args[0]):
        if kwargs.get("force"):
            return _quietly(to_host(session, args[0].detach(), "numpy").numpy, (), {})
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy."
            " Use Tensor.cpu() to copy the tensor to host memory first."
        )
    return func(*args, **kwargs)


def _tolist(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    if session.tags.is_cuda(args[0]):
        return to_host(session, args[0], "tolist").tolist()
    return func(*args, **kwargs)


def _repr(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Showing values reads them; an empty tensor has none."""
    tensor = args[0]
    if not session.tags.is_cuda(tensor):
        return func(*args, **kwargs)
    if tensor.numel():
        if tensor.is_floating_point() or tensor.is_complex():
            session.allocate("repr")  # the finite values are picked out first
        session.read_host("host_read", "repr")
    text: str = _quietly(func, args, kwargs)
    return text[:-1] + f", device='{DEVICE}')" if text.endswith(")") else text


def _format(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """A tensor without dimensions is formatted as its value, any other as its repr."""
    if args[0].dim() and session.tags.is_cuda(args[0]):
        return _repr(session, T.__repr__, args[:1], kwargs)
    return func(*args, **kwargs)


def _quietly(func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Carry a call out without looking into it."""
    with torch._C._DisableTorchDispatch():  # noqa: SLF001
        return func(*args, **kwargs)


def _deepcopy(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    if not session.tags.is_cuda(args[0]):
        return func(*args, **kwargs)
    session.launch("deepcopy")
    result = _quietly(func, args, kwargs)
    session.tags.mark_cuda(result)
    return result


def _pin_memory(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    del func, kwargs
    tensor = args[0]
    if session.tags.is_cuda(tensor):
        raise RuntimeError(
            f"cannot pin 'torch.cuda.{_CUDA_TYPES[tensor.dtype]}' only dense CPU tensors can be"
            " pinned"
        )
    if session.tags.is_pinned(tensor):
        return tensor
    generators.check_pinned_allocation(session)
    result = _quietly(tensor.clone, (), {})
    session.tags.mark_pinned(result)
    return result


def _is_pinned(session: Session, func: Any, args: Args, kwargs: Kwargs) -> bool:
    del func, kwargs
    return session.tags.is_pinned(args[0])


def _same(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Calls that do nothing to a tensor of the device."""
    return args[0] if session.tags.is_cuda(args[0]) else func(*args, **kwargs)


def _array_interface(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    tensor = args[0]
    if not session.tags.is_cuda(tensor):
        return func(*args, **kwargs)
    array = _quietly(tensor.detach().numpy, (), {}).__array_interface__
    return {**array, "version": 2}


def _one_hot(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """With the number of classes given, a device tensor is not looked at (measured)."""
    given = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if given == -1:
        return _inside(session, func, args, kwargs)
    return _unchecked(session, func, args, kwargs)


_VALUE_CHECKS = ("aten::_local_scalar_dense", "aten::equal")


def _unchecked(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Calls that look at the values of a host tensor to check them, and not at a device one's."""
    return _inside(
        session, func, args, kwargs, _VALUE_CHECKS if session.tags.is_cuda(args[0]) else ()
    )


def _inside(
    session: Session, func: Any, args: Args, kwargs: Kwargs, skipped: Collection[str] = ()
) -> Any:
    """Carry a call out; operators named in ``skipped`` break no rule meanwhile."""
    local = session.local
    outer, outer_call = local.exempt, local.call
    local.call = (func, args, kwargs)
    local.exempt = outer.union(skipped)
    try:
        return func(*args, **kwargs)
    finally:
        local.exempt, local.call = outer, outer_call


def _ctc_loss(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Its lengths may lie on the host; torch brings them over inside."""
    return _inside(session, func, args, kwargs, (MIXING,))


def _type_as(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    del func, kwargs
    return move(session, T.to, args, {})


def _getitem(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """A list of truth values becomes a device tensor first, unlike a mask of the host."""
    if session.tags.is_cuda(args[0]) and _is_list_mask(args[1]):
        mask = torch.zeros(1, dtype=torch.bool)
        judge_copy(session, mask, "index", non_blocking=False, direct=True)
    return _inside(session, func, args, kwargs)


def _is_list_mask(index: Any) -> bool:
    if isinstance(index, list):
        return bool(index) and isinstance(index[0], bool)
    return getattr(getattr(index, "dtype", None), "kind", "") == "b"  # an array of numpy


def _setitem(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """Only the words of a type error differ between devices."""
    try:
        return _inside(session, func, args, kwargs)
    except TypeError as error:
        if not session.tags.is_cuda(args[0]):
            raise
        raise TypeError(str(error).replace(" a torch.", " a torch.cuda.")) from None


def _tensor_split(session: Session, func: Any, args: Args, kwargs: Kwargs) -> Any:
    where = args[1] if len(args) > 1 else None
    if isinstance(where, T) and session.tags.is_cuda(where):
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0"
        )
    return func(*args, **kwargs)


def _getter(name: str) -> Any:
    return getattr(T, name).__get__


HANDLERS: dict[Any, Handler] = {
    _getter("device"): _attribute(DEVICE),
    _getter("is_cuda"): _attribute(True),
    _getter("is_cpu"): _attribute(False),
    T.get_device: _attribute(0),
    torch.get_device: _attribute(0),
    T.to: move,
    T.cuda: _cuda,
    T.cpu: _cpu,
    T.type: _type,
    T.numpy: _numpy,
    T.__array__: _numpy,
    T.tolist: _tolist,
    T.__repr__: _repr,
    T.__format__: _format,
    T.__deepcopy__: _deepcopy,
    T.pin_memory: _pin_memory,
    T.is_pinned: _is_pinned,
    T.share_memory_: _same,
    T.__cuda_array_interface__.__get__: _array_interface,
    torch.nn.functional.one_hot: _one_hot,
    torch.quantile: _unchecked,
    T.quantile: _unchecked,
    torch.nanquantile: _unchecked,
    T.nanquantile: _unchecked,
    torch.ctc_loss: _ctc_loss,
    torch.nn.functional.ctc_loss: _ctc_loss,
    T.type_as: _type_as,
    T.__getitem__: _getitem,
    T.__setitem__: _setitem,
    torch.tensor_split: _tensor_split,
    T.tensor_split: _tensor_split,
}
