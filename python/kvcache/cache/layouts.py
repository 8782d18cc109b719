# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts of caches: those of engines, by name or read off a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..checks import check_instance, check_positive, check_string
from . import rows

if TYPE_CHECKING:
    from .params import KVCacheParams

DIMS = ("page", "role", "layer", "token", "head", "element")
"""The dimensions of a collection's blocks, in their order."""

_LETTERS = {"L": "layer", "B": "page", "H": "head", "N": "token"}
_VLLM = ("LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC")
_ORDERS = {
    "NHD": DIMS,
    "HND": ("page", "role", "layer", "head", "token", "element"),
    # vLLM's C is the key and the value of a head side by side.
    **{
        name: (*(_LETTERS[letter] for letter in name[:-1]), "role", "element")
        for name in _VLLM
    },
}


class Distances(NamedTuple):
    """The layout of a type: distances in stored elements, or in scales.

    ``head`` is None if it is only known at run time, or for one head. ``interleave`` is
    the number of tokens whose scales share rows. ``role`` is the distance between keys
    and values; None if it is as aligned as tokens and heads.
    """

    token: int
    head: int | None
    interleave: int = 1
    role: int | None = None


@dataclass(frozen=True)
class Layout:
    """The order in memory of a cache's dimensions, and its distances.

    A layout comes from ``from_name`` or from ``describe``. ``KVCacheParams.with_layout``
    makes it a part of the types.

    Attributes:
        order: The dimensions from the slowest to the fastest, if they are packed in this
            order; None if the distances were read off a tensor.
        token: The distance between two tokens of a head, in stored elements; None for a
            named layout, where it follows from the parameters.
        head: The distance between two heads of a token, in stored elements; None if it
            is only known at run time, or for a named layout.
        dims: The dimensions of the tensor that it was read off, in their order.
        interleave: The number of tokens whose scales share rows: see ``interleaved``.
        role: The distance between a key and its value, in stored elements; None if
            there is one role, or for a named layout.
    """

    order: tuple[str, ...] | None = None
    token: int | None = None
    head: int | None = None
    dims: tuple[str, ...] = ()
    interleave: int = 1
    role: int | None = None

    @classmethod
    def from_name(
        cls, name: str, params: KVCacheParams | None = None
    ) -> Layout | rows.RowLayout:
        """A layout of an engine.

        ``"NHD"``, the order of MAX and of packed rows, and ``"HND"`` are FlashInfer's and
        TensorRT-LLM's. ``"LBHNC"``, ``"LBNHC"``, ``"LHBNC"``, ``"BLHNC"``, ``"BLNHC"`` and
        ``"BHLNC"`` are vLLM's: layer, page, head, token, and C with the key and the value
        of a head side by side. ``"FlashMLA-V3.2"`` and ``"FlashMLA-V4"`` are rows of
        fields of several types. So are the index keys ``"DeepGEMM-index"`` and
        ``"DeepGEMM-index-MXFP4"``, without a rope.

        Args:
            name: One of these names.
            params: If given, the layout is checked against them.

        Raises:
            ValueError: The name is unknown.
        """
        check_string(name=name)
        if name in rows.LAYOUTS:
            return rows.LAYOUTS[name]
        if name not in _ORDERS:
            known = ", ".join((*_ORDERS, *rows.LAYOUTS))
            raise ValueError(f"unknown layout {name!r}; known are {known}")
        layout = cls(_ORDERS[name])
        if params is not None:
            params.with_layout(layout)
        return layout

    def __post_init__(self) -> None:
        if self.order is not None and sorted(self.order) != sorted(DIMS):
            raise ValueError(
                f"expects 'order' to be of {', '.join(DIMS)}, got {self.order}"
            )
        if (self.order is None) == (self.token is None):
            raise ValueError("expects either 'order' or 'token'")
        for name in ("token", "head", "role"):
            if getattr(self, name) is not None:
                check_positive(**{name: getattr(self, name)})
        check_positive(interleave=self.interleave)

    def interleaved(self, tokens: int) -> Layout:
        """Copies a layout of scales with the scales of ``tokens`` tokens sharing rows.

        FlashInfer and TensorRT-LLM interleave the scales of NVFP4 values by 4.
        """
        return replace(self, interleave=tokens)

    # --- Distances ------------------------------------------------------------------

    def distances(self, sizes: dict[str, int]) -> tuple[int, int | None]:
        """The distances of tokens and heads, in elements of a row of ``sizes["element"]``.

        Args:
            sizes: The sizes of ``role``, ``token``, ``head`` and ``element``.

        Raises:
            ValueError: The distance of tokens depends on the number of pages or layers.
        """
        if self.order is None:
            assert self.token is not None
            return self.token, self.head
        token = self._get_distance("token", sizes)
        if token is None:
            raise ValueError("the distance of tokens is only known at run time")
        return token, self._get_distance("head", sizes)

    def _get_distance(self, dim: str, sizes: dict[str, int]) -> int | None:
        assert self.order is not None
        inner = self.order[self.order.index(dim) + 1 :]
        if not set(inner) <= set(sizes):
            return None
        return math.prod(sizes[name] for name in inner)

    def find_order(self, sizes: dict[str, int]) -> tuple[str, ...]:
        """Finds the order of the dimensions, from the slowest to the fastest.

        Distances without an order take that of a named layout with these distances.

        Args:
            sizes: As for ``distances``.

        Raises:
            ValueError: No named layout has these distances.
        """
        if self.order is not None:
            return self.order
        width, heads = sizes["element"], sizes["head"]
        if self.role is not None and self.role % width:
            raise ValueError(
                f"no named layout has keys and values {self.role} elements apart, for "
                f"heads of {width}: there is no tensor to allocate"
            )
        given = Distances(self.distances(sizes)[0], None if heads == 1 else self.head)
        for order in _ORDERS.values():
            token, head = Layout(order).distances(sizes)
            if given == Distances(token, None if heads == 1 else head):
                return order
        raise ValueError(
            f"no named layout has tokens {self.token} and heads {self.head} elements "
            f"apart, for heads of {width}: there is no tensor to allocate"
        )

    def compute_distances(
        self, kinds: int, tokens: int, heads: int, width: int, itemsize: int
    ) -> Distances | None:
        """The distances for rows of these sizes; None for packed rows.

        Args:
            kinds: The number of roles: 2 for keys and values, 1 for MLA.
            tokens: Tokens per page.
            heads: Heads per token.
            width: Stored elements, or scales, per head.
            itemsize: Bytes per stored element, or per scale.
        """
        sizes = {"role": kinds, "token": tokens, "head": heads, "element": width}
        token, head = self.distances(sizes)
        head = None if heads == 1 else head
        alignment = itemsize * math.gcd(width, token, head or 0)
        role = self.role if kinds > 1 else None
        if role is not None and role * itemsize % _largest_power(alignment) == 0:
            role = None
        result = Distances(token, head, self.interleave, role)
        packed = Distances(heads * width, None if heads == 1 else width)
        # With one token, the order of tokens and heads makes no difference, so ``hnd``
        # is left out of a type.
        is_packed = (
            result == packed or tokens == 1 and result == Distances(width, width)
        )
        return None if is_packed else result

    # --- Tensors --------------------------------------------------------------------

    def collection(self, tensor: Any) -> Any:
        """Views the tensor that ``describe`` read as blocks of a collection.

        Its dimensions become page, role, layer, token, head and element; missing ones
        have size 1. It is not copied. The tensor needs ``reshape`` and ``transpose`` or
        ``permute``, as arrays of NumPy and CuPy and tensors of PyTorch have.
        """
        if not self.dims:
            raise ValueError(
                "only a layout of 'describe' has the dimensions of a tensor"
            )
        _check_rank(tensor, self.dims)
        present = [dim for dim in DIMS if dim in self.dims]
        moved = permute(tensor, [self.dims.index(dim) for dim in present])
        return moved[tuple(slice(None) if dim in self.dims else None for dim in DIMS)]

    def view(self, tensor: Any, *, layer: int = 0, role: int = 0) -> Any:
        """One layer's keys (role 0) or values (1): [pages, tokens, heads, elements]."""
        return self.collection(tensor)[:, role, layer]


def describe(tensor: Any, dims: str) -> Layout:
    """Reads the layout of a tensor off its strides.

    A shape alone is ambiguous, so ``dims`` names each dimension: ``page``, ``token``
    and ``element``, and optionally ``role`` (keys and values), ``layer`` and ``head``.
    An example is ``describe(cache, dims="page role head token element")``.

    Args:
        tensor: An array of NumPy, PyTorch or CuPy, or of another library with DLPack.
        dims: The names of its dimensions, separated by blanks.

    Raises:
        ValueError: The names do not fit the dimensions, the elements of a head are not
            contiguous, or a distance is negative or 0.

    Examples:
        >>> import numpy as np
        >>> cache = np.zeros((8, 2, 4, 16, 64), np.float32)  # FlashInfer's HND
        >>> layout = describe(cache, "page role head token element")
        >>> layout.token, layout.head
        (64, 1024)
        >>> layout.collection(cache).shape  # pages, roles, layers, tokens, heads, elements
        (8, 2, 1, 16, 4, 64)
    """
    check_string(dims=dims)
    names = tuple(dims.split())
    _check_rank(tensor, names)
    if unknown := [name for name in names if name not in DIMS]:
        raise ValueError(
            f"unknown dimension {unknown[0]!r}; known are {', '.join(DIMS)}"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"expects each dimension once, got {dims!r}")
    if missing := [name for name in ("page", "token", "element") if name not in names]:
        raise ValueError(
            f"expects 'dims' to have {' and '.join(missing)}, got {dims!r}"
        )
    sizes = dict(zip(names, tensor.shape, strict=True))
    strides = dict(zip(names, _strides(tensor), strict=True))
    for name in names:
        if sizes[name] > 1 and strides[name] <= 0:
            raise ValueError(
                f"expects a positive distance along {name!r}, got {strides[name]} elements"
            )
    if sizes["element"] > 1 and strides["element"] != 1:
        raise ValueError(
            "expects the elements of a head side by side, got a distance of "
            f"{strides['element']}"
        )
    head, role = (
        strides[name] if sizes.get(name, 1) > 1 else None for name in ("head", "role")
    )
    return Layout(token=strides["token"], head=head, dims=names, role=role)


def _largest_power(number: int) -> int:
    """The largest power of two that divides a number, at most 16."""
    return math.gcd(number, 16)


def permute(tensor: Any, axes: Sequence[int]) -> Any:
    """Reorders the dimensions of a tensor, without a copy."""
    if hasattr(tensor, "permute"):  # PyTorch
        return tensor.permute(tuple(axes))
    return tensor.transpose(tuple(axes))


def _check_rank(tensor: Any, dims: Sequence[str]) -> None:
    if len(tensor.shape) != len(dims):
        raise ValueError(
            f"expects a name for each of {len(tensor.shape)} dimensions, got {' '.join(dims)!r}"
        )


def _strides(tensor: Any) -> list[int]:
    """The distances along the dimensions of a tensor, in elements."""
    if callable(stride := getattr(tensor, "stride", None)):  # PyTorch
        return [int(distance) for distance in stride()]
    if not hasattr(tensor, "strides"):
        tensor = np.from_dlpack(tensor)
    for distance in tensor.strides:
        if distance % tensor.itemsize:
            raise ValueError(
                f"expects distances of whole elements of {tensor.itemsize} bytes, got "
                f"{distance} bytes"
            )
    return [distance // tensor.itemsize for distance in tensor.strides]


def check_layouts(layout: object, scale_layout: object, *, has_scales: bool) -> None:
    """Raises ``TypeError`` or ``ValueError`` for invalid layouts of a cache."""
    for name, value in (("layout", layout), ("scale_layout", scale_layout)):
        if value is not None:
            check_instance(Layout, **{name: value})
    if scale_layout is not None and not has_scales:
        raise ValueError("'scale_layout' needs 'kvcache_quant_config'")
