# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a kernel of attention computes: the fields of ``#kvcache.attention_config``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from ..checks import check_flag, check_instance, check_integer

_WORDS = {
    "mma": ("none", "mma_sync", "wgmma", "tcgen05"),
    "dequant": ("tile", "registers"),
    "l2_hint": ("evict_first", "evict_normal", "evict_last"),
    "schedule": ("pipelined", "ping_pong", "prefetch", "seesaw", "roles", "pair"),
    "merge": ("launch", "cluster"),
}
_NUMBERS: dict[str, tuple[int, ...] | range] = {
    "rows": (16, 32, 64, 128, 256),
    "keys": range(16, 128 + 1, 16),
    "stages": range(1, 16 + 1),
    "acc_shares": (1, 2),
    "raw_stages": (0, 1, 2),
    "convert_loads": range(1, 16 + 1),
    "persistent": range(2**20 + 1),
}


@dataclass(frozen=True)
class AttentionConfig:
    """How the kernels of ``kvcache.ops.attention`` compute; it changes no meaning.

    A field that is set is kept, or compiling for a chip that can't have it raises. The
    compiler chooses the others by tables. The CPU has no use for a config.

    Attributes:
        mma: The matrix instruction: ``"none"``, ``"mma_sync"``, ``"wgmma"`` (sm_90a) or
            ``"tcgen05"`` (sm_100a and its successors).
        swap_ab: Whether ``wgmma`` has keys and values as its left operand: tokens are
            its rows, and 16 or 32 query rows its columns.
        rows: Query rows of a thread block on tensor cores: 16, 32, 64 or 128, and 256 with
            the schedule ``"roles"``.
        keys: Keys of a tile, a multiple of 16 up to 128.
        stages: Tiles of keys, and of values, in shared memory, from 1 to 16.
        acc_shares: Warps or warpgroups that share the accumulator of a query row, 1 or
            2.
        dequant: Where elements of 8 bits or less are converted: ``"tile"`` or
            ``"registers"``.
        raw_stages: Tiles of stored elements that copies bring before threads convert
            them, at most 2.
        convert_loads: Loads of a thread in flight while it converts elements into a
            tile, from 1 to 16.
        persistent: Thread blocks of a persistent kernel; 0 for a grid.
        l2_hint: The eviction priority of the cache in L2: ``"evict_first"``,
            ``"evict_normal"`` or ``"evict_last"``.
        schedule: The overlap of products: ``"prefetch"``, or with a warpgroup that
            copies tiles ``"pipelined"``, or ``"ping_pong"`` for two warpgroups in turns.
            ``"seesaw"`` is for latent caches: warpgroups have every second tile.
            ``"roles"`` is for prompts in tensor memory: two query tiles, whose warps copy,
            multiply, or compute exponentials. ``"pair"`` is for latent caches of 128
            query heads there: two thread blocks multiply together.
        merge: Where splits are merged: by a second ``"launch"``, the default, or by the
            ``"cluster"`` of thread blocks that compute the splits of the same rows, on
            sm_90 and newer. A cluster needs no workspace, and has at most 8 splits. The
            results have the same bits.
    """

    mma: str | None = None
    swap_ab: bool | None = None
    rows: int | None = None
    keys: int | None = None
    stages: int | None = None
    acc_shares: int | None = None
    dequant: str | None = None
    raw_stages: int | None = None
    convert_loads: int | None = None
    persistent: int | None = None
    l2_hint: str | None = None
    schedule: str | None = None
    merge: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.given.items():
            if name == "swap_ab":
                check_flag(swap_ab=value)
                object.__setattr__(self, name, bool(value))
            elif name in _WORDS:
                _check_choice(name, value, _WORDS[name])
            else:
                check_integer(**{name: value})
                _check_choice(name, int(value), _NUMBERS[name])
                object.__setattr__(self, name, int(value))
        if self.mma == "none" and self.given.keys() - {"mma", "l2_hint"}:
            raise ValueError("expects no field but 'l2_hint' with mma='none'")
        if self.merge == "cluster":
            if self.persistent:
                raise ValueError(
                    f"expects 'persistent' to be 0 with merge='cluster', got {self.persistent}"
                )
            if self.mma not in (None, "mma_sync"):
                raise ValueError(
                    f"expects 'mma' to be 'mma_sync' with merge='cluster', got {self.mma!r}"
                )
        if self.swap_ab and self.rows not in (None, 16, 32):
            raise ValueError(f"expects 'rows' to be 16 or 32 with 'swap_ab', got {self.rows}")

    @property
    def given(self) -> dict[str, Any]:
        """The fields that are set."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in given.items() if value is not None}

    def __str__(self) -> str:
        """The attribute's text."""
        texts = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in self.given.items()
        }
        return f"#kvcache.attention_config<{', '.join(f'{k} = {v}' for k, v in texts.items())}>"

    @classmethod
    def parse(cls, text: str) -> AttentionConfig:
        """Parses the attribute's text."""
        fields = text.partition("<")[2].rpartition(">")[0]
        pairs = (field.split(" = ") for field in fields.split(", ") if field)
        return cls(**{name: _parse_value(value) for name, value in pairs})


def _parse_value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text


def _check_choice(name: str, value: Any, possible: Any) -> None:
    if isinstance(value, str) == isinstance(possible[0], str) and value in possible:
        return
    rule = f"one of {possible}"
    if isinstance(possible, range):
        step = f"a multiple of {possible.step} " if possible.step > 1 else ""
        rule = f"{step}from {possible[0]} to {possible[-1]}"
    raise ValueError(f"expects {name!r} to be {rule}, got {value!r}")


def make_config(
    config: AttentionConfig | None,
    tile_rows: int | None,
    scheduled_blocks: int | None,
    swap_operands: bool | None,
    l2_hint: str | None,
) -> AttentionConfig:
    """Returns a config with the keywords of ``kvcache.ops.attention``.

    Raises:
        TypeError: A value has another type.
        ValueError: A keyword or a field is out of range, or is given twice.
    """
    config = _UNSET if config is None else config
    check_instance(AttentionConfig, config=config)
    if tile_rows is not None:
        check_integer(tile_rows=tile_rows)
        _check_choice("tile_rows", tile_rows, (0, *_NUMBERS["rows"]))
    keywords = {
        # Without tiles, there is a warp for each row.
        "mma": "none" if tile_rows == 0 else None,
        "rows": tile_rows or None,
        "persistent": scheduled_blocks,
        "swap_ab": swap_operands,
        "l2_hint": l2_hint,
    }
    given: dict[str, Any] = {
        field: value for field, value in keywords.items() if value is not None
    }
    for field in given:
        if getattr(config, field) is not None:
            raise ValueError(
                f"expects either {_KEYWORDS[field]!r} or {field!r} of 'config'"
            )
    with _name_keywords():
        return replace(config, **given)


_UNSET = AttentionConfig()
_KEYWORDS = {
    "mma": "tile_rows",
    "rows": "tile_rows",
    "persistent": "scheduled_blocks",
    "swap_ab": "swap_operands",
    "l2_hint": "l2_hint",
}


@contextlib.contextmanager
def _name_keywords() -> Iterator[None]:
    """Writes keywords in place of fields into errors."""
    try:
        yield
    except (TypeError, ValueError) as error:
        text = str(error)
        for field, keyword in _KEYWORDS.items():
            text = text.replace(repr(field), repr(keyword))
        text = text.replace("mma='none'", "tile_rows=0")
        raise type(error)(text) from None
