# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checks of FlashAttention's arguments. Elements are read only in host memory."""

from __future__ import annotations

from typing import Any

import torch

DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
_INTEGERS = (torch.int32, torch.int64)


def refuse(name: str, value: Any, unset: Any, reason: str) -> None:
    """Raises ``ValueError`` for an argument that kernels do not support."""
    if value is not None and (unset is None or value != unset):
        raise ValueError(f"{name!r} is not supported: {reason}")


def check_shape(name: str, tensor: Any, shape: tuple[int, ...]) -> None:
    """Raises ``ValueError`` for a tensor of other sizes."""
    if tuple(tensor.shape) != shape:
        raise ValueError(f"expects {name!r} of {list(shape)}, got {list(tensor.shape)}")


def check_queries(q: Any, sizes: str, rank: int) -> None:
    """Checks the queries, and that PyTorch does not track their gradients."""
    _check_tensor("q", q)
    if q.dim() != rank:
        raise ValueError(f"expects 'q' of {sizes}, got {list(q.shape)}")
    if q.dtype not in DTYPES:
        raise ValueError(
            f"expects 'q' of float16, bfloat16 or float32, got {q.dtype}"
        )
    if not (q.shape[-2] and q.shape[-1]):
        raise ValueError(f"expects 'q' with heads and elements, got {list(q.shape)}")
    if q.device.type not in ("cpu", "cuda"):
        raise ValueError(f"expects 'q' on a CPU or a CUDA device, got {q.device}")


def check_device(q: Any, **tensors: Any) -> None:
    """Raises ``ValueError`` unless tensors are integers on the device of ``q``."""
    for name, tensor in tensors.items():
        _check_tensor(name, tensor)
        _check_place(q, name, tensor)
        if tensor.dtype not in _INTEGERS:
            raise ValueError(f"expects {name!r} of int32 or int64, got {tensor.dtype}")


def check_floats(q: Any, name: str, tensor: Any, *dtypes: Any) -> None:
    """Raises ``ValueError`` unless a tensor has one of the dtypes, and the place of ``q``."""
    _check_tensor(name, tensor)
    _check_place(q, name, tensor)
    if tensor.dtype not in dtypes:
        wanted = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise ValueError(f"expects {name!r} of {wanted}, got {tensor.dtype}")


def check_cache(q: Any, rank: int = 4, **tensors: Any) -> None:
    """Checks keys and values, which are named, against the queries."""
    (first, keys), (_, values) = tensors.items()
    sizes = "[pages, page_size, kv_heads, head_dim]"
    if rank == 3:
        sizes = "[total_k, kv_heads, head_dim]"
    for name, tensor in tensors.items():
        _check_tensor(name, tensor)
        if tensor.dim() != rank:
            raise ValueError(f"expects {name!r} of {sizes}, got {list(tensor.shape)}")
        _check_rows(q, name, tensor)
    heads, kv_heads = q.shape[-2], keys.shape[-2]
    if not kv_heads or heads % kv_heads:
        raise ValueError(
            f"expects the heads of 'q' to be a multiple of those of {first!r} "
            f"({kv_heads}), got {heads}"
        )
    check_shape([*tensors][1], values, tuple(keys.shape))


def check_new_rows(q: Any, cache: Any, **rows: Any) -> int:
    """Checks new keys and values; returns their number per sequence."""
    given = [name for name, tensor in rows.items() if tensor is not None]
    if not given:
        return 0
    if len(given) < len(rows):
        raise ValueError(f"expects both 'k' and 'v', or none, got only {given[0]!r}")
    first = next(iter(rows.values()))
    for name, tensor in rows.items():
        _check_tensor(name, tensor)
        if tensor.dim() != 4:
            raise ValueError(
                f"expects {name!r} of [batch, seqlen_new, kv_heads, head_dim], got "
                f"{list(tensor.shape)}"
            )
        _check_rows(q, name, tensor)
        check_shape(name, tensor, (q.shape[0], first.shape[1], *cache.shape[2:]))
    return int(first.shape[1])


def parse_table(q: Any, table: Any, batch: int) -> Any:
    """Checks a block table, and returns it as int32 with contiguous rows."""
    check_device(q, block_table=table)
    if table.dim() != 2 or table.shape[0] != batch:
        raise ValueError(
            f"expects 'block_table' of [{batch}, columns], got {list(table.shape)}"
        )
    table = narrow(table)
    return table if table.stride(1) == 1 else table.contiguous()


def check_lengths(name: str, lengths: Any, new: int, most: int) -> None:
    """Raises ``ValueError`` for a sequence without room for its keys."""
    if not is_readable(lengths):
        return
    for sequence, length in enumerate(lengths.tolist()):
        check_length(name, length, new, most, f" for sequence {sequence}")


def check_length(name: str, length: int, new: int, most: int, place: str = "") -> None:
    """Raises ``ValueError`` unless ``most`` keys have room for ``length`` and new ones."""
    if not 0 <= length <= most - new:
        what = f", and {new} new ones," if new else ""
        raise ValueError(
            f"expects {name!r} to be for at most {most} keys of a sequence{what} and not "
            f"negative, got {length}{place}"
        )


def check_offsets(
    name: str, offsets: Any, total: int | None, bound: str, most: int
) -> None:
    """Checks offsets of sequences, and the bound of their differences."""
    if offsets.dim() != 1 or not len(offsets):
        raise ValueError(f"expects {name!r} of [batch + 1], got {list(offsets.shape)}")
    if not is_readable(offsets):
        return
    numbers = offsets.tolist()
    counts = [end - start for start, end in zip(numbers, numbers[1:])]
    if numbers[0] != 0 or min(counts, default=0) < 0:
        raise ValueError(f"expects {name!r} to begin with 0 and not to decrease")
    if total is not None and numbers[-1] > total:
        raise ValueError(
            f"expects {name!r} to end at most at the {total} rows, got {numbers[-1]}"
        )
    if (longest := max(counts, default=0)) > most:
        raise ValueError(
            f"expects {bound!r} to be at least the longest sequence ({longest}), got "
            f"{most}"
        )


def narrow(numbers: Any) -> Any:
    """Converts integers to int32.

    In host memory, those out of range become its ends, which are no lengths or pages.
    """
    if numbers.dtype == torch.int64 and is_readable(numbers):
        numbers = numbers.clamp(-(2**31), 2**31 - 1)
    return numbers.int()


def is_readable(tensor: Any) -> bool:
    """Whether the host can read a tensor without a wait."""
    return bool(tensor.device.type == "cpu")


def _check_tensor(name: str, tensor: Any) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expects {name!r} to be a tensor, got {type(tensor).__name__}")
    if tensor.layout != torch.strided:
        raise TypeError(f"expects {name!r} to be a dense tensor, got {tensor.layout}")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            f"expects {name!r} without gradients, which attention to a cache does not "
            "have: use torch.no_grad()"
        )


def _check_place(q: Any, name: str, tensor: Any) -> None:
    if tensor.device != q.device:
        raise ValueError(
            f"expects {name!r} on {q.device}, as 'q' is, got {tensor.device}"
        )


def _check_rows(q: Any, name: str, tensor: Any) -> None:
    """Checks the rows of keys or values: their place, type and head size."""
    _check_place(q, name, tensor)
    if tensor.dtype != q.dtype:
        raise ValueError(f"expects {name!r} of {q.dtype}, as 'q' is, got {tensor.dtype}")
    if tensor.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"expects {name!r} to have heads of {q.shape[-1]} elements, as 'q' has, got "
            f"{tensor.shape[-1]}"
        )
