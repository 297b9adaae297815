"""The few calls of the CUDA driver that a check needs, by ctypes. Standard library only."""

from __future__ import annotations

import ctypes
import uuid
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p

LIBRARY = "libcuda.so.1"
NON_BLOCKING = 1
THREAD_LOCAL = 1

# Three times the value plus one, for ``count`` words: an arithmetic unit has to work for it.
PTX = b"""
.version 6.3
.target sm_70
.address_size 64
.visible .entry triple_plus_one(.param .u64 words, .param .u32 count)
{
    .reg .pred %over;
    .reg .b32 %block, %size, %thread, %at, %count, %value;
    .reg .b64 %base, %offset, %place;
    ld.param.u64 %base, [words];
    ld.param.u32 %count, [count];
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %at, %block, %size, %thread;
    setp.ge.u32 %over, %at, %count;
    @%over bra DONE;
    cvta.to.global.u64 %base, %base;
    mul.wide.u32 %offset, %at, 4;
    add.s64 %place, %base, %offset;
    ld.global.u32 %value, [%place];
    mad.lo.u32 %value, %value, 3, 1;
    st.global.u32 [%place], %value;
DONE:
    ret;
}
\0"""


class DriverError(Exception):
    """A call that the driver refused; the text says which, and with what."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call.partition('_v')[0]} gave {name} ({code})")
        self.code = code


class Driver:
    """CUDA as the driver itself offers it; every call raises `DriverError` when refused."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self.call("cuInit", c_uint(0))

    def call(self, name: str, *arguments: object) -> None:
        """Call the function ``name``."""
        code = getattr(self._library, name)(*arguments)
        if code:
            raise DriverError(name, code, self._name_of(code))

    def _name_of(self, code: int) -> str:
        text = c_char_p()
        self._library.cuGetErrorName(c_int(code), byref(text))
        return text.value.decode() if text.value else "an unknown error"

    def device_count(self) -> int:
        """Return how many devices this process sees."""
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        return count.value

    def device(self, index: int) -> c_int:
        """Return the device with this number."""
        device = c_int()
        self.call("cuDeviceGet", byref(device), c_int(index))
        return device

    def name(self, device: c_int) -> str:
        """Return what the device is called."""
        text = ctypes.create_string_buffer(96)
        self.call("cuDeviceGetName", text, c_int(len(text)), device)
        return text.value.decode("utf-8", "replace")

    def uuid(self, device: c_int) -> str | None:
        """Return the device's UUID as NVML writes it, None where the driver does not tell it."""
        found = (ctypes.c_ubyte * 16)()
        try:
            self.call("cuDeviceGetUuid", byref(found), device)
        except (AttributeError, DriverError):
            return None
        return f"GPU-{uuid.UUID(bytes=bytes(found))}"

    def context(self, device: c_int) -> c_void_p:
        """Return the device's primary context, made current."""
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)
        return context

    def free_memory(self) -> tuple[int, int]:
        """Return free and total bytes of the current device."""
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def allocate(self, size: int) -> c_void_p:
        """Return the address of ``size`` new bytes on the current device."""
        place = c_void_p()
        self.call("cuMemAlloc_v2", byref(place), c_size_t(size))
        return place

    def stream(self) -> c_void_p:
        """Return a new stream that does not wait for the legacy default stream."""
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), c_uint(NON_BLOCKING))
        return stream

    def fill(self, place: c_void_p, word: int, count: int, stream: c_void_p) -> None:
        """Write ``count`` words of 32 bits, in the order of the stream."""
        self.call("cuMemsetD32Async", place, c_uint(word), c_size_t(count), stream)

    def wait_for(self, stream: c_void_p) -> None:
        """Wait until everything of the stream is done."""
        self.call("cuStreamSynchronize", stream)

    def words(self, place: c_void_p, count: int) -> list[int]:
        """Return ``count`` words of 32 bits from the device."""
        found = (c_uint * count)()
        self.call("cuMemcpyDtoH_v2", found, place, c_size_t(4 * count))
        return list(found)

    def kernel(self) -> c_void_p:
        """Return the kernel, compiled by the driver for the current device."""
        module, kernel = c_void_p(), c_void_p()
        self.call("cuModuleLoadData", byref(module), c_char_p(PTX))
        self.call("cuModuleGetFunction", byref(kernel), module, c_char_p(b"triple_plus_one"))
        return kernel

    def launch(self, kernel: c_void_p, place: c_void_p, count: int, stream: c_void_p) -> None:
        """Run the kernel over ``count`` words, in the order of the stream."""
        size = c_uint(count)
        pointers = (c_void_p * 2)(
            ctypes.cast(byref(place), c_void_p), ctypes.cast(byref(size), c_void_p)
        )
        blocks, threads, none = (count + 255) // 256, 256, c_uint(0)
        grid = (c_uint(blocks), c_uint(1), c_uint(1))
        block = (c_uint(threads), c_uint(1), c_uint(1))
        self.call("cuLaunchKernel", kernel, *grid, *block, none, stream, pointers, None)

    def begin_capture(self, stream: c_void_p) -> None:
        """Begin to record what is put on the stream instead of doing it."""
        self.call("cuStreamBeginCapture_v2", stream, c_int(THREAD_LOCAL))

    def end_capture(self, stream: c_void_p) -> c_void_p:
        """Return what was recorded, ready to be launched."""
        graph, ready = c_void_p(), c_void_p()
        self.call("cuStreamEndCapture", stream, byref(graph))
        self.call("cuGraphInstantiateWithFlags", byref(ready), graph, ctypes.c_ulonglong(0))
        return ready

    def replay(self, graph: c_void_p, stream: c_void_p) -> None:
        """Do what was recorded."""
        self.call("cuGraphLaunch", graph, stream)

    def copy_to_peer(
        self, target: tuple[c_void_p, c_void_p], source: tuple[c_void_p, c_void_p], size: int
    ) -> None:
        """Copy between two devices; a place is an address with its context."""
        self.call("cuMemcpyPeer", *target, *source, c_size_t(size))
