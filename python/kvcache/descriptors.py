# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The descriptors that a kernel takes as its last parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _native, dtypes, geometry
from .geometry import DescriptorFields


@dataclass(frozen=True)
class Descriptor:
    """What a host needs to know to make a descriptor of 128 bytes for a launch.

    A descriptor that the compiler added is of a view of the cache that another argument
    brings; its sizes and strides name what only the host knows of the view:
    ``"rows"``, those from its first row to its last (``kvcache.num_kv_rows``),
    ``"pages"``, and ``"page_stride"``, elements from a page to the next. Of one that the
    source declares, only the box and what follows it is known.

    Attributes:
        parameter: The name of the kernel's parameter.
        view: The argument that brings the cache, as ``cache``, or as the ``collection``
            or its ``blocks`` with ``role`` and ``layer``: a number, or the name of an
            argument. Empty if the source declares the descriptor.
        kind: That of ``kvcache.descriptor_fields``; None as above.
        dims: Sizes, innermost first.
        strides: Distances in elements of all dimensions but the innermost.
        offset: Bytes from the base of the view to the tensor.
        box: What one copy moves.
        element_type: MLIR's name of what dims and box count.
        swizzle: ``"none"``, ``"32b"``, ``"64b"`` or ``"128b"``.
        l2_promotion: Bytes that the L2 cache fetches at least: 0, 64, 128 or 256.
    """

    parameter: str
    view: dict[str, str | int]
    kind: str | None
    dims: tuple[int | str, ...]
    strides: tuple[int | str, ...]
    offset: int
    box: tuple[int, ...]
    element_type: str
    swizzle: str
    l2_promotion: int

    def fields(self, **extents: int) -> DescriptorFields:
        """The fields for a view of the given ``rows``, ``pages`` and ``page_stride``.

        Raises ``ValueError`` for an extent that the descriptor takes and that is
        missing, and for a descriptor that the source declares.
        """
        if self.kind is None:
            raise ValueError(f"the source says what {self.parameter!r} is of")
        dtype = dtypes.dtype(self.element_type)
        dims = tuple(_resolve(size, extents) for size in self.dims)
        strides = tuple(_resolve(stride, extents) for stride in self.strides)
        broken = _native.extension().broken_limit(
            dims,
            strides,
            self.box,
            dtype.itemsize,
            geometry.span(self.swizzle),
            self.offset,
        )
        return DescriptorFields(
            dtype, dims, strides, self.box, self.swizzle, self.offset, broken
        )


def _resolve(size: int | str, extents: Mapping[str, int]) -> int:
    if isinstance(size, int):
        return size
    name, _, constant = size.partition(" + ")
    if name not in extents:
        raise ValueError(f"expects {name!r}, which the descriptor depends on")
    return extents[name] + int(constant or 0)


_FACTS = (
    "kind",
    "sizes",
    "strides",
    "offset",
    "box",
    "element_type",
    "swizzle",
    "l2_promotion",
)


def describe(parameter: str, facts: Mapping[str, Any]) -> Descriptor:
    """A descriptor from what the compiler says of the parameter."""
    return Descriptor(
        parameter=parameter,
        view={name: value for name, value in facts.items() if name not in _FACTS},
        kind=facts.get("kind"),
        dims=tuple(facts.get("sizes", ())),
        strides=tuple(facts.get("strides", ()))[1:],
        offset=facts.get("offset", 0),
        box=tuple(facts["box"]),
        element_type=facts["element_type"],
        swizzle=facts["swizzle"].removeprefix("swizzle_"),
        l2_promotion=facts["l2_promotion"],
    )
