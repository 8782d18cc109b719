"""Operations on the CPU with chosen matrix instructions."""

import copy
from unittest import mock

import pytest

import kvcache
from kvcache import _native
from kvcache.compilation import processors
from kvcache.execution import matrix

# AMX tiles are emulated, so that they run on all processors.
KINDS = {"fma": "fma", "dot": "dot", "tiles": "amx"}
OPTIONS = property(lambda level: f"{level.expansion} fma=1 emulate-tiles={int(level.mma == 'amx')}")


def use_mma(operation, mma, **options):
    """Returns the operation with these matrix instructions, or skips the test without them."""
    _, _, features = _native.extension().host()
    if mma == "dot" and "avx512bf16" not in features.split("+"):
        pytest.skip("needs AVX512-BF16")
    # Operations are shared, and remember what they call.
    own = copy.copy(operation)
    own.__dict__.pop("_checked", None)
    wide = processors.Level("", 512, True)
    with (
        mock.patch.object(matrix, "choose_mma", lambda features, opt_level: KINDS[mma]),
        mock.patch.object(processors.Level, "options", OPTIONS),
        mock.patch.object(processors, "make_host_level", lambda features: wide),
    ):
        own.__dict__["program"] = kvcache.jit(operation.source, **options)
    return own
