# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of the command ``python -m kvcache tune``."""

from __future__ import annotations

import argparse
from pathlib import Path

_EXAMPLES = """\
A shape is BATCHxLENGTH, or BATCHxLENGTHxNEW for several new tokens of each sequence.
All shapes get one config.

examples:
  python -m kvcache tune 64x8192 1x131072 --heads 32/8 --option split_tokens=256
  python -m kvcache tune 1x8192x8192 --heads 32/8 --file h200.json
  python -m kvcache tune 64x8192 --heads 128/1 --head-dim 576 --latent --page-size 64 \\
    --option value_dim=512 --option split_tokens=1024
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to the parser of the command."""
    parser.description = "Measures configs of kvcache.ops.attention on random elements."
    parser.epilog = _EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("shapes", nargs="+", metavar="SHAPE", help="sequences of a step, as 64x8192")
    add("--heads", required=True, metavar="Q/KV", help="heads of queries and the cache, as 32/8")
    add("--head-dim", type=int, default=128, metavar="N", help="elements of a head (default: 128)")
    add("--dtype", default="bf16", help="the type of the cache's elements (default: bf16)")
    add("--scales", metavar="TYPE/N", help="scales for N elements each, as f32/128")
    add("--page-size", type=int, default=16, metavar="N", help="tokens of a page (default: 16)")
    add("--latent", action="store_true", help="keys and values are latent rows (MLA)")
    add(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another argument of kvcache.ops.attention, as window=4096",
    )
    add("--target", default="cuda", help="as in kvcache.jit (default: cuda)")
    add("--device", type=int, default=0, metavar="N", help="the GPU (default: 0)")
    add("--file", type=Path, help="the tuning file (default: that of this GPU)")
    add("--seconds", type=float, default=60, metavar="N", help="the time (default: 60)")
    add(
        "--allow-other-bits",
        action="store_true",
        help="also measure configs whose results are rounded differently",
    )
