"""What a cubin says about the parameters of its kernels.

A cubin is an ELF file. The section ``.nv.info.KERNEL`` is a list of attributes; one for each parameter has its place
among the parameters, its offset and its size.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_SECTION = struct.Struct("<IIQQQQIIQQ")
_INLINE_FORMATS = (1, 2, 3)  # the value is in the attribute's own four bytes
_SIZED_FORMAT = 4
_KPARAM_INFO = 0x17


class CubinError(ValueError):
    """The bytes are not a cubin, or it lacks the kernel."""


@dataclass(frozen=True)
class Slot:
    """A kernel parameter's bytes."""

    offset: int
    size: int


def _sections(cubin: bytes) -> dict[str, bytes]:
    if cubin[:4] != b"\x7fELF" or len(cubin) < 64:
        raise CubinError("not a cubin: it does not begin as an ELF file")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [_SECTION.unpack_from(cubin, table + i * size) for i in range(count)]
    text = headers[names][4]
    sections = {}
    for header in headers:
        name = cubin[text + header[0] : cubin.index(b"\0", text + header[0])].decode()
        sections[name] = cubin[header[4] : header[4] + header[5]]
    return sections


def _parameter_facts(attributes: bytes) -> dict[int, Slot]:
    slots: dict[int, Slot] = {}
    at = 0
    while at + 4 <= len(attributes):
        kind, name, size = struct.unpack_from("<BBH", attributes, at)
        if kind not in (*_INLINE_FORMATS, _SIZED_FORMAT):
            raise CubinError(f"attribute {name:#x} has the unknown format {kind}")
        if (kind, name) == (_SIZED_FORMAT, _KPARAM_INFO):
            _, ordinal, offset, bits = struct.unpack_from("<IHHI", attributes, at + 4)
            slots[ordinal] = Slot(offset, bits >> 18)
        at += 4 + (size if kind == _SIZED_FORMAT else 0)
    return slots


def read_parameters(cubin: bytes, kernel: str) -> tuple[Slot, ...]:
    """The parameters of a kernel, in their order."""
    try:
        sections = _sections(cubin)
        if f".text.{kernel}" not in sections:
            known = ", ".join(name[6:] for name in sections if name.startswith(".text.")) or "none"
            raise CubinError(f"there is no kernel {kernel!r}; the cubin has {known}")
        slots = _parameter_facts(sections.get(f".nv.info.{kernel}", b""))
    except (struct.error, ValueError, IndexError) as error:
        if isinstance(error, CubinError):
            raise
        raise CubinError(f"a damaged cubin: {error}") from error
    return tuple(slots[ordinal] for ordinal in sorted(slots))
