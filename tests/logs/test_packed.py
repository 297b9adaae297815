"""Packed logs that were cut off or damaged: what can be read is read, and the damage is told."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
from collections.abc import Callable

import pytest
import zstandard

from capdoctor.errors import CannotDo
from capdoctor.logs import read_log
from capdoctor.logs.pack import pack
from capdoctor.logs.tables import PACKED
from capdoctor.logs.zstdframes import Watched

DICE = random.Random(1)  # noqa: S311 - the same for the same seed
TEXT = b"".join(b"INFO line %d %d\n" % (i, DICE.getrandbits(i % 200 + 1)) for i in range(20_000))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": lambda data: bz2.compress(data, 1),
    "xz": lzma.compress,
    "zstd": zstandard.compress,
}
DAMAGE = "the packed data ends early or is damaged"
BLOCK = 140_000  # bytes of text that a cut may cost: a block of zstd, or 100 kB of bzip2


@pytest.mark.parametrize("packer", sorted(PACKERS))
@pytest.mark.parametrize("share", [0.999, 0.9, 0.6])
def test_all_before_a_cut_is_read(packer: str, share: float) -> None:
    packed = PACKERS[packer](TEXT)
    log = read_log(io.BytesIO(packed[: int(share * len(packed))]))
    assert DAMAGE in log.limits_hit
    assert log.total_bytes > 0.95 * share * len(TEXT) - BLOCK


@pytest.mark.parametrize("packer", sorted(PACKERS))
def test_a_cut_before_any_text_is_called_damage(packer: str) -> None:
    packed = PACKERS[packer](TEXT[:30_000])
    with pytest.raises(CannotDo, match="is damaged"):
        read_log(io.BytesIO(packed[:25]))


@pytest.mark.parametrize("packer", ["bzip2", "zstd"])
def test_a_cut_in_the_first_block_is_called_damage(packer: str) -> None:
    packed = PACKERS[packer](TEXT[:30_000])
    with pytest.raises(CannotDo, match="is damaged"):
        read_log(io.BytesIO(packed[: len(packed) // 2]))


@pytest.mark.parametrize("packer", sorted(PACKERS))
def test_whole_and_joined_files_show_no_damage(packer: str) -> None:
    packed = PACKERS[packer](TEXT)
    for times in (1, 2):
        log = read_log(io.BytesIO(packed * times))
        assert (log.total_bytes, log.limits_hit) == (times * len(TEXT), ())


def zstd_of(dice: random.Random) -> bytes:
    raw = dice.choice([b"", b"a" * 300_000, dice.randbytes(200_000), b"ab c" * 9_000])
    parameters = zstandard.ZstdCompressionParameters(
        compression_level=dice.choice([1, 9]),
        write_content_size=dice.random() < 0.5,
        write_checksum=dice.random() < 0.5,
    )
    packer = zstandard.ZstdCompressor(compression_params=parameters)
    if dice.random() < 0.5:
        return packer.compress(raw)
    stream = packer.compressobj()
    return stream.compress(raw) + stream.flush()


@pytest.mark.parametrize("seed", range(40))
def test_frames_of_zstd_are_whole_only_at_their_ends(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - the same for the same seed
    frames = [zstd_of(dice), b"\x50\x2a\x4d\x18\x05\0\0\0hello", zstd_of(dice)]
    data, ends, at = b"".join(frames), set[int](), 0
    for frame in frames:
        at += len(frame)
        ends.add(at)
    for cut in {*ends, *(dice.randrange(1, len(data)) for _ in range(20))}:
        watched = Watched(io.BytesIO(data[:cut]))
        while watched.read(dice.choice([7_000, 70_000])):
            pass
        assert watched.whole == (cut in ends)


def test_packed_tables_are_fresh() -> None:
    assert PACKED.read_text("utf-8") == pack()
