"""Fixtures of tests on the stand-in driver of CUDA."""

import pytest
import standin
from fill import FILL


@pytest.fixture(scope="module")
def fill():
    """A program with a kernel that fills an array."""
    return standin.get().jit(FILL)


@pytest.fixture
def stream(driver):
    """A stream that the default one does not wait for."""
    from cuda.bindings import driver as bindings

    non_blocking = 1
    return standin.succeed(bindings.cuStreamCreate(non_blocking))
