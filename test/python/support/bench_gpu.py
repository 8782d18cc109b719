"""What the tests of the benchmarks on a GPU have in common; `packed` is in conftest.py."""

CHIP = "sm_100a"
