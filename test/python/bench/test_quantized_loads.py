"""Tests that the record of dequantizing loads has the compiler's instructions."""

import pytest
import quantized_loads
import results
from compiled import needs_tools

ROWS = results.read_record("quantized-loads")["tables"]["instructions"]["rows"]


def test_record_has_all_formats():
    assert [tuple(row[:3]) for row in ROWS] == quantized_loads.FORMATS


@needs_tools
@pytest.mark.parametrize("number", [0, 7, 8])
def test_record_has_instructions_of_loads(number):
    # Another version of LLVM or ptxas may choose a few other instructions.
    *_, newest_count = ROWS[number]
    text = quantized_loads.source(*ROWS[number][:3], "bf16")
    assert quantized_loads.count(text, "sm_120a") == pytest.approx(newest_count, rel=0.1)
