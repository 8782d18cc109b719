"""The record of dequantizing loads is what the compiler makes."""

import pytest
import quantized_loads
import results
from test_benchmarks import needs_ptxas

ROWS = results.read_record("quantized-loads")["tables"]["instructions"]["rows"]


def test_record_has_all_formats():
    assert [tuple(row[:3]) for row in ROWS] == quantized_loads.FORMATS


@needs_ptxas
@pytest.mark.parametrize("number", [0, 7, 8])
def test_record_has_instructions_of_loads(number):
    """Another version of LLVM or ptxas may choose other instructions, but not many."""
    *_, of_newest = ROWS[number]
    text = quantized_loads.source(*ROWS[number][:3], "bf16")
    assert quantized_loads.count(text, "sm_120a") == pytest.approx(of_newest, rel=0.1)
