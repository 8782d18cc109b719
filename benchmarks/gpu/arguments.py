"""From arrays and numbers to the bytes of a kernel's parameters.

Our kernels name their parameters: `out` is the pointer of an array, `out.size0` a size of it, `key.page_stride` a part
of a cache's view. Hand-written kernels take a struct.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .inputs import Number


class ArgumentError(ValueError):
    """A kernel needs an argument that the work lacks, or has in another size."""


@dataclass(frozen=True)
class DeviceArray:
    """A contiguous array in the device's memory."""

    address: int
    shape: tuple[int, ...]
    itemsize: int

    def stride(self, dim: int) -> int:
        """Elements from an index to the next."""
        return math.prod(self.shape[dim + 1 :])

    def part(self, part: str) -> int:
        """The parameter of this name: the pointer if it is empty, else a size or a stride."""
        if not part:
            return self.address
        for prefix, value in (("size", lambda dim: self.shape[dim]), ("stride", self.stride)):
            dim = part[len(prefix) :]
            if part.startswith(prefix) and dim.isdigit() and int(dim) < len(self.shape):
                return value(int(dim))
        raise ArgumentError(f"an array has no {part!r}")


@dataclass(frozen=True)
class Cache:
    """A collection of pages, or the view of one layer's keys (role 0) or values (role 1)."""

    blocks: DeviceArray
    lengths: DeviceArray
    table: DeviceArray
    max_seq: int
    max_cache: int
    scales: DeviceArray | None = None
    role: int | None = None
    layer: int = 0

    def part(self, part: str) -> int:
        """The parameter of this name, as the dialect's types expand to them."""
        parts = {
            **self._paged("blocks", "", self.blocks),
            **(self._paged("scales", "scale_", self.scales) if self.scales else {}),
            "num_layers": self.blocks.shape[2], "page_size": self.blocks.shape[3],
            "cache_lengths": self.lengths.address, "batch": self.lengths.shape[0],
            "lookup_table": self.table.address, "scale_table": self.table.address,
            "table_columns": self.table.shape[1], "scale_columns": self.table.shape[1],
            "table_stride": self.table.stride(0), "scale_table_stride": self.table.stride(0),
            "max_seq_length": self.max_seq, "max_cache_length": self.max_cache,
        }
        if part not in parts:
            raise ArgumentError(f"a cache has no {part!r}")
        return parts[part]

    def _paged(self, pointer: str, prefix: str, array: DeviceArray) -> dict[str, int]:
        pages = "scale_pages" if prefix else "num_pages"
        return {
            pointer: self._first(array), pages: array.shape[0], f"{prefix}page_stride": array.stride(0),
            f"{prefix}role_stride": array.stride(1), f"{prefix}layer_stride": array.stride(2),
        }

    def _first(self, array: DeviceArray) -> int:
        if self.role is None:
            return array.address
        return array.address + (self.role * array.stride(1) + self.layer * array.stride(2)) * array.itemsize

    def extents(self) -> dict[str, int]:
        """The sizes of a view that its descriptor needs: see ``kvcache.Descriptor``."""
        pages, _, _, page_size, heads, head_size = self.blocks.shape
        page_stride = self.blocks.stride(0)
        rows = (pages - 1) * page_stride // (heads * head_size) + page_size
        return {"rows": rows, "pages": pages, "page_stride": page_stride}

    def view(self, role: int, layer: int) -> Cache:
        return Cache(self.blocks, self.lengths, self.table, self.max_seq, self.max_cache, self.scales, role, layer)


Values = Mapping[str, "DeviceArray | Cache | Number"]


@dataclass(frozen=True)
class TensorMap:
    """The arguments of ``cuTensorMapEncodeTiled``, innermost first; strides are in bytes, without the innermost."""

    address: int
    element_bytes: int
    dims: tuple[int, ...]
    stride_bytes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: str
    l2_promotion: int = 0


def encode_number(value: Number, size: int) -> bytes:
    """A number in so many bytes, an integer signed or unsigned."""
    if isinstance(value, float):
        return struct.pack({4: "<f", 8: "<d"}[size], value)
    try:
        return value.to_bytes(size, "little", signed=value < 0)
    except OverflowError:
        raise ArgumentError(f"{value} does not fit into {size} bytes") from None


def look_up(name: str, values: Values) -> Number:
    """The number or the address that a parameter of our kernels stands for."""
    root, _, part = name.partition(".")
    if root not in values:
        raise ArgumentError(f"unknown argument {root!r}; known are {', '.join(values)}")
    value = values[root]
    if isinstance(value, DeviceArray | Cache):
        return value.part(part)
    if part:
        raise ArgumentError(f"a number has no {part!r}")
    return value


def encode_struct(fields: str, members: Sequence[str | int], values: Values) -> bytes:
    """A struct of C++ with fields of ``struct``'s letters. Members are names as our parameters have, or numbers."""
    numbers = [look_up(member, values) if isinstance(member, str) else member for member in members]
    data = struct.pack(f"@{fields}", *numbers)
    alignment = max(struct.calcsize(f"@{letter}") for letter in fields)
    return data.ljust(-(-len(data) // alignment) * alignment, b"\0")


def check(arguments: Sequence[bytes], sizes: Sequence[int], kernel: str) -> None:
    """Raises ``ArgumentError`` unless the arguments are as many and as long as the machine code says."""
    if len(arguments) != len(sizes):
        raise ArgumentError(f"kernel {kernel} has {len(sizes)} parameters, got {len(arguments)}")
    for index, (argument, size) in enumerate(zip(arguments, sizes)):
        if len(argument) != size:
            raise ArgumentError(f"parameter {index} of kernel {kernel} has {size} bytes, got {len(argument)}")


# --- Descriptors -----------------------------------------------------------------------------------------------------

_ELEMENT_BYTES = {"f8E4M3FN": 1, "f8E5M2": 1, "i8": 1, "bf16": 2, "f16": 2, "i16": 2, "f32": 4, "i32": 4, "i64": 8}


def _resolve(size: int | str, extents: Mapping[str, int]) -> int:
    """A size of ``kvcache.Descriptor``: a number, or ``rows`` or ``rows + 1``."""
    if isinstance(size, int):
        return size
    name, _, more = size.partition(" + ")
    return extents[name] + int(more or 0)


def find_view(view: Mapping[str, int | str], values: Values) -> Cache:
    """The cache that a descriptor is of."""
    name = next((view[key] for key in ("cache", "collection", "blocks") if key in view), None)
    if name is None:
        raise ArgumentError("the source declares the descriptor, whose tensor is unknown")
    cache = values.get("collection" if "blocks" in view else name)
    if not isinstance(cache, Cache):
        raise ArgumentError(f"the cache of {name!r} is unknown")
    if "cache" in view:
        return cache
    layer = view["layer"] if isinstance(view["layer"], int) else look_up(view["layer"], values)
    return cache.view({"key": 0, "value": 1}[view["role"]], layer)


def make_tensor_map(descriptor: Mapping, values: Values) -> TensorMap:
    """The tensor map for a descriptor, as a dictionary of the fields of ``kvcache.Descriptor``."""
    cache = find_view(descriptor["view"], values)
    extents = cache.extents()
    element_bytes = _ELEMENT_BYTES[descriptor["element_type"]]
    return TensorMap(
        cache.part("blocks") + descriptor["offset"],
        element_bytes,
        tuple(_resolve(size, extents) for size in descriptor["dims"]),
        tuple(_resolve(stride, extents) * element_bytes for stride in descriptor["strides"]),
        tuple(descriptor["box"]),
        descriptor["swizzle"],
        descriptor["l2_promotion"],
    )
