# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the backend, from an environment variable."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields

from ..torch.engine_options import check_names, read_splits

__all__ = ["VARIABLE", "Options"]

VARIABLE = "KVCACHE_SGLANG"
"""The environment variable with the options, a JSON object."""


@dataclass(frozen=True)
class Options:
    """The options of ``KVCACHE_SGLANG='{...}'``.

    Attributes:
        target: The target of ``kvcache.jit``: ``"cuda"`` on GPUs and ``"cpu"`` elsewhere
            by default, or ``"emulator:sm_90a"`` and other chips on a CPU.
        split_tokens: Tokens per split of a long sequence; 0 for no splits. By default
            256 on GPUs and emulated ones.
        max_splits: The most splits of a row.
    """

    target: str
    split_tokens: int
    max_splits: int = 32

    @classmethod
    def read(cls, is_on_gpu: bool) -> Options:
        """Reads the options of this process.

        Raises:
            ValueError: The variable has no JSON, or an option is unknown or out of
                range.
            TypeError: The JSON is no object, or an option has the wrong type.
        """
        text = os.environ.get(VARIABLE, "") or "{}"
        try:
            given = json.loads(text)
        except ValueError as error:
            raise ValueError(
                f"expects {VARIABLE} to be a JSON object, got {text!r}: {error}"
            ) from None
        if not isinstance(given, dict):
            raise TypeError(f"expects {VARIABLE} to be a JSON object, got {text!r}")
        check_names(given, [field.name for field in fields(cls)], VARIABLE)
        return cls(**read_splits(given, is_on_gpu, cls.max_splits))
