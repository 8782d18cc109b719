# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command ``python -m kvcache tune``."""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import Any

from ..cache.params import KVCacheParams
from ..cache.quantization import KVCacheQuantizationConfig
from ..errors import Error
from ..ops import attention
from ..ops.attention_operation import Attention
from .synthetic import Shape, SyntheticExample
from .tuner import TuningResult, tune


def run(options: argparse.Namespace) -> int:
    """Tunes an operation for shapes; returns the exit status."""
    try:
        shapes = [Shape.parse(text) for text in options.shapes]
        operation = _make_operation(options)
        examples = [SyntheticExample(operation, shape, options.device) for shape in shapes]
        result = tune(
            operation,
            *examples,
            file=options.file,
            seconds=options.seconds,
            allow_other_bits=options.allow_other_bits,
            device=options.device,
        )
    except (Error, ValueError, TypeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _report(result, shapes)
    return 0


def _make_operation(options: argparse.Namespace) -> Attention:
    query_heads, kv_heads = _parse_pair("--heads", options.heads, r"(\d+)/(\d+)")
    config = None
    if options.scales:
        dtype, granularity = _parse_pair("--scales", options.scales, r"(\w+)/(\d+)")
        config = KVCacheQuantizationConfig(dtype, int(granularity))
    params = KVCacheParams(
        options.dtype,
        int(kv_heads),
        options.head_dim,
        page_size=options.page_size,
        total_num_layers=1,
        is_mla=options.latent,
        kvcache_quant_config=config,
    )
    given = dict(map(_parse_option, options.option))
    return attention(params, int(query_heads), target=options.target, **given)


def _parse_pair(name: str, text: str, pattern: str) -> tuple[str, str]:
    match = re.fullmatch(pattern, text, re.ASCII)
    if not match:
        raise ValueError(f"expects {name} to be two words, as in 32/8 or f32/128, got {text!r}")
    return match[1], match[2]


def _parse_option(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not (sign and name.isidentifier()):
        raise ValueError(f"expects --option to be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _report(result: TuningResult, shapes: list[Shape]) -> None:
    print(f"{result.measured} configs measured, {len(result.failed)} failed")
    for shape, own, planned in zip(
        shapes, result.microseconds, result.planned_microseconds, strict=True
    ):
        print(f"{str(shape):16}  {own:10.2f} us, planned {planned:10.2f} us")
    print(result.config)
    print(f"in {result.file}")
