# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The quantization of a cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import dtypes
from ..checks import check_positive
from ..dtypes import DTypeLike

_SCALES = dtypes.formats("Scale")
# Numbers in a type take 64 bits.
_MAX_GRANULARITY = 2**63


@dataclass(frozen=True)
class KVCacheQuantizationConfig:
    """The scales of a quantized cache.

    Attributes:
        scale_dtype: The dtype of the scales: float32, float16, bfloat16, float8_e8m0fnu
            or float8_e4m3fn.
        quantization_granularity: The number of elements of a head that share a scale.
        zero_point_dtype: The dtype of zero points, equal to that of the scales; None
            without. Only caches of uint4 have zero points.
        token_granularity: The number of consecutive tokens that share a scale per
            channel, with a granularity of 1.

    Raises:
        ValueError: The scales are not supported.
        TypeError: A value is not a dtype or not a number.
    """

    scale_dtype: DTypeLike = np.float32
    quantization_granularity: int = 128
    zero_point_dtype: DTypeLike | None = None
    token_granularity: int = 1

    def __post_init__(self) -> None:
        for name in ("quantization_granularity", "token_granularity"):
            self._normalize_granularity(name)
        scale_dtype = dtypes.cached_dtype("scale_dtype", self.scale_dtype)
        if (scale_name := dtypes.mlir_name(scale_dtype)) not in _SCALES:
            raise ValueError(
                f"expects 'scale_dtype' to be one of {', '.join(_SCALES)}, got "
                f"{scale_name}"
            )
        # The dataclass is frozen.
        object.__setattr__(self, "scale_dtype", scale_dtype)
        if self.zero_point_dtype is not None:
            zero_point = dtypes.cached_dtype("zero_point_dtype", self.zero_point_dtype)
            object.__setattr__(self, "zero_point_dtype", zero_point)

    def _normalize_granularity(self, name: str) -> None:
        check_positive(**{name: getattr(self, name)})
        granularity = int(getattr(self, name))
        if granularity >= _MAX_GRANULARITY:
            raise ValueError(f"expects {name!r} to be below 2^63, got {granularity}")
        object.__setattr__(self, name, granularity)
