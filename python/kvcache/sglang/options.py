# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the backend, from an environment variable."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields

from ..checks import check_size, check_string

__all__ = ["VARIABLE", "Options"]

VARIABLE = "KVCACHE_SGLANG"
"""The environment variable with the options, a JSON object."""

_MOST = 2**20


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
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                raise ValueError(
                    f"expects the options in {VARIABLE} to be of {', '.join(names)}, "
                    f"got {name!r}"
                )
        target = given.get("target", "cuda" if is_on_gpu else "cpu")
        check_string(target=target)
        split_tokens = given.get("split_tokens", 0 if target == "cpu" else 256)
        if split_tokens != 0:
            check_size(_MOST, split_tokens=split_tokens)
        max_splits = given.get("max_splits", cls.max_splits)
        check_size(_MOST, max_splits=max_splits)
        return cls(target, split_tokens, max_splits)
