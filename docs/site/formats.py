"""Makes the page of formats: those that the dialect's verifier accepts, and the bytes of each."""

from __future__ import annotations

from collections.abc import Iterator

import kvcache
from kvcache import dtypes

ELEMENTS = dtypes.formats("Element", "Scaled")
SCALES = dtypes.formats("Scale")
GRANULARITIES = 1, 8, 16, 32, 64, 128
HEAD = 128
KNOWN_AS = {
    ("f8E4M3FN", "f8E8M0FNU", 32): "MXFP8",
    ("f8E5M2", "f8E8M0FNU", 32): "MXFP8",
    ("f4E2M1FN", "f8E4M3FN", 16): "NVFP4",
    ("f4E2M1FN", "f8E8M0FNU", 32): "MXFP4",
}

_TEXT = """# Formats

A format is the type of the elements of a cache, the type of its scales, and their granularity: the number of elements that
share a scale. The table has what the verifier accepts. Bytes are those of a head of 128 elements, scales included.

{table}

`any` granularity is from 1 to the size of a head, whose last group may be shorter. [Quantization
scales](../explanation/quantization-scales.md) has the semantics, and [scales of
channels](../explanation/channel-scales.md) a granularity of tokens.
"""


def pages() -> dict[str, str]:
    return {"reference/formats.md": _TEXT.format(table=_tabulate())}


def _tabulate() -> str:
    rows = [
        "| elements | in NumPy | scales | zero points | granularity | bytes of a head | known as |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for element in ELEMENTS:
        for scale, has_zero_points, granularities in find(element):
            is_any = granularities == GRANULARITIES
            known = {KNOWN_AS.get((element, scale, each), "") for each in granularities} - {""}
            sizes = sorted({_bytes(element, scale, each, has_zero_points) for each in granularities})
            cells = (
                f"`{element}`",
                dtypes.dtype(element).name,
                f"`{scale}`" if scale else "none",
                "yes" if has_zero_points else "",
                ("any" if is_any else ", ".join(map(str, granularities))) if scale else "",
                str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} with {granularities[-1]}",
                ", ".join(sorted(known)) + (" with 32" if is_any and known else ""),
            )
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def find(element: str) -> Iterator[tuple[str, bool, tuple[int, ...]]]:
    """The scales that a cache of some elements may have: their type, zero points, and granularities."""
    if _bytes(element, "", 0, False) is not None:
        yield "", False, (0,)
    for has_zero_points in (False, True):
        for scale in SCALES:
            fitting = tuple(
                each for each in GRANULARITIES if _bytes(element, scale, each, has_zero_points) is not None
            )
            if fitting:
                yield scale, has_zero_points, fitting


def _bytes(element: str, scale: str, granularity: int, has_zero_points: bool) -> int | None:
    """The bytes of a head, or nothing where there is no such format."""
    try:
        config = None
        if scale:
            points = scale if has_zero_points else None
            config = kvcache.KVCacheQuantizationConfig(scale, granularity, points)
        params = kvcache.KVCacheParams(element, 1, HEAD, page_size=1, total_num_layers=1, kvcache_quant_config=config)
        return params.bytes_per_block // 2
    except (ValueError, kvcache.Error):
        return None
