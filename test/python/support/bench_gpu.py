"""The common parts of tests of the benchmarks on a GPU; `packed` is in conftest.py."""

CHIP = "sm_100a"
