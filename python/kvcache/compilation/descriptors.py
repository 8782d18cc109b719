# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The descriptors that are the last parameters of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import _native, dtypes
from ..cache import geometry
from ..cache.geometry import DescriptorFields


@dataclass(frozen=True)
class Descriptor:
    """The data from which a host creates a descriptor of 128 bytes for a launch.

    A descriptor that the compiler added describes a view of the cache in another
    argument. Its sizes and strides may be names of the host's values. ``"rows"`` counts
    from the first row of the view to the last (``kvcache.num_kv_rows``), and
    ``"pages"`` the pages. ``"page_stride"`` and ``"head_stride"`` are in elements of
    the cache, as in ``"page_stride / 8"`` where the descriptor has larger elements.
    ``"rows"`` requires pages whose distance is a whole number of rows, which the host
    has to check. For a descriptor that the source declares, only ``box`` and the
    attributes after it are set.

    Attributes:
        parameter: The name of the kernel's parameter.
        view: The argument of the cache, as ``cache``, or as the ``collection`` or its
            ``blocks`` with ``role`` and ``layer``: a number, or the name of an argument.
            ``blocks`` alone hold one layer's keys or values. Empty if the source
            declares the descriptor.
        kind: The kind of ``kvcache.descriptor_fields``; None if the source declares the
            descriptor.
        dims: The sizes, innermost first.
        strides: The strides of all dimensions except the innermost, in elements.
        offset: Bytes from the base of the view to the tensor.
        box: The sizes of the box that one copy moves.
        element_type: MLIR's name of the element type of dims and box.
        swizzle: ``"none"``, ``"32b"``, ``"64b"`` or ``"128b"``.
        l2_promotion: The minimum number of bytes that the L2 cache fetches: 0, 64, 128 or
            256.
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
        """The fields for a view of the given extents, such as ``rows`` and ``pages``.

        Raises ``ValueError`` if a needed extent is missing, or not positive, and for a
        descriptor that the source declares. Raises ``TypeError`` for an extent that is
        not an integer.
        """
        geometry.check_sizes(**extents)
        if self.kind is None:
            raise ValueError(f"the source declares what {self.parameter!r} describes")
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
    extent, _, constant = size.partition(" + ")
    name, _, divisor = extent.partition(" / ")
    if name not in extents:
        raise ValueError(f"expects {name!r}, which the descriptor depends on")
    units, rest = divmod(int(extents[name]), int(divisor or 1))
    if rest:
        raise ValueError(
            f"expects {name!r} to be a multiple of {divisor}, got {extents[name]}"
        )
    return units + int(constant or 0)


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
    """Creates a descriptor from the compiler's description of the parameter."""
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
