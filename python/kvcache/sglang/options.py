# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the backend, from an environment variable."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from ..ops.splits import StepBounds
from ..torch.engine_options import EngineSplits, check_names, read_target

__all__ = ["VARIABLE", "Options"]

VARIABLE = "KVCACHE_SGLANG"
"""The environment variable with the options, a JSON object."""


@dataclass(frozen=True)
class Options:
    """The options of ``KVCACHE_SGLANG='{...}'``.

    Attributes:
        target: The target of ``kvcache.jit``: ``"cuda"`` on GPUs and ``"cpu"`` elsewhere
            by default, or ``"emulator:sm_90a"`` and other chips on a CPU.
        splits: ``split_tokens`` and ``max_splits`` as in ``kvcache.ops.attention``, and
            0 tokens for no splits. By default, the sizes of SGLang's table of tokens
            choose them.
    """

    target: str
    splits: EngineSplits

    @classmethod
    def read(cls, is_on_gpu: bool, bounds: StepBounds) -> Options:
        """Reads the options of this process.

        Args:
            is_on_gpu: Whether SGLang runs on a GPU.
            bounds: The bounds of SGLang's steps.

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
        check_names(given, ("target", "split_tokens", "max_splits"), VARIABLE)
        return cls(read_target(given, is_on_gpu), EngineSplits.read(given, bounds))
