"""Tests that inputs of a step which are no arrays in memory are rejected with their name."""

import numpy as np
import pytest

import kvcache


class FakeTensor:
    """A tensor of another library that can't be read."""

    def __init__(self, shape, **fields):
        self.shape, self.dtype = shape, np.dtype(np.int32)
        for name, value in fields.items():
            setattr(self, name, value)

    def __dlpack_device__(self):
        raise RuntimeError("an error of another library")


@pytest.mark.parametrize("name", ["lengths", "lut", "row_offsets", "blocks", "scales"])
def test_step_inputs_are_dense_arrays_in_memory(name):
    given = {
        "blocks": np.zeros((4, 2, 2, 4, 2, 32), np.float32),
        "lengths": np.zeros(2, np.int32),
        "lut": np.zeros((2, 2), np.int32),
        "row_offsets": np.array([0, 1, 2], np.int32),
    }
    shape = given.get(name, given["blocks"]).shape
    wrong = [
        (np.ma.masked_array(np.zeros(shape, np.int32)), "a masked array"),
        (FakeTensor(shape, is_meta=True), "a meta tensor"),
        (FakeTensor(shape, is_meta=False, layout="torch.sparse_coo"), "a sparse tensor"),
    ]
    if name not in ("blocks", "scales"):
        wrong.append((FakeTensor(shape), "FakeTensor"))
    for array, found in wrong:
        with pytest.raises(
            TypeError,
            match=f"expects {name!r} to be a dense array with its elements in memory, "
            f"got {found}$",
        ):
            kvcache.StepInputs.of(**{**given, name: array})
    with pytest.raises(ValueError, match="expects 'blocks' for at least one device"):
        kvcache.StepInputs.of(**{**given, "blocks": ()})
