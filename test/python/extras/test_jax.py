"""Tests of kvcache.jax: caches are donated, and changed in place under jax.jit."""

import functools

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import kvcache
import kvcache.jax
from kvcache.ops.bindings import Binding

PARAMS = kvcache.KVCacheParams("f32", 2, 16, page_size=4, total_num_layers=2)
PUT = """
func.func @put(%cache: memref<?x4xf32>, %layer: index, %x: memref<4xf32>, %factor: f32) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>
  %factors = vector.broadcast %factor : f32 to vector<4xf32>
  %y = arith.mulf %v, %factors : vector<4xf32>
  vector.store %y, %cache[%layer, %c0] : memref<?x4xf32>, vector<4xf32>
  return
}
"""
program = kvcache.jit(PUT, opt_level=0)
put = kvcache.jax.op(program, "put", mutates=["cache"])
NO_GPU = jax.default_backend() == "cpu"
TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(NO_GPU, reason="needs a GPU and jax[cuda]"))]


def address(array):
    return array.unsafe_buffer_pointer()


@functools.partial(jax.jit, donate_argnums=0)
def put_all(cache, x):
    for layer in range(3):
        cache = put(cache, layer, x, layer + 1.0)
    return cache


def test_a_donated_cache_stays_in_place():
    cache = jnp.zeros((5, 4)) + 0
    before = address(cache)
    for _ in range(3):
        cache = put_all(cache, jnp.ones(4))
        assert address(cache) == before
    assert cache[:, 0].tolist() == [1, 2, 3, 0, 0]


def test_cache_that_is_not_donated_stays_unchanged():
    cache = jnp.zeros((5, 4))
    changed = jax.jit(lambda cache, x: put(cache, 1, x, 1.0))(cache, jnp.ones(4))
    assert not cache.any() and changed[1].all()
    assert put(cache, 2, jnp.ones(4), 1.0)[2].all() and not cache.any()


def test_scans():
    @functools.partial(jax.jit, donate_argnums=0)
    def run(cache, rows):
        return jax.lax.scan(lambda cache, x: (put(cache, 0, x, 1.0), cache[0, 0]), cache, rows)

    cache = jnp.zeros((5, 4)) + 0
    before = address(cache)
    cache, seen = run(cache, jnp.arange(12.0).reshape(3, 4))
    assert address(cache) == before
    assert seen.tolist() == [0, 0, 4] and cache[0].tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("target", TARGETS)
def test_a_layer_of_a_model(target):
    """Tests append and attention of a step, against the same functions on NumPy's arrays."""
    append = kvcache.jax.op(kvcache.ops.append(PARAMS, target=target))
    attend = kvcache.jax.op(kvcache.ops.attention(PARAMS, 4, target=target))
    manager = kvcache.PagedKVCacheManager(PARAMS, max_batch_size=2, max_seq_len=32, num_pages=8)
    for request, length in enumerate((5, 7)):
        manager.claim(request, np.arange(length))
    inputs = manager.inputs([0, 1])
    rng = np.random.default_rng(0)
    keys, values = rng.standard_normal((2, 12, 2, 16), np.float32)
    q = rng.standard_normal((12, 4, 16), np.float32)
    out = np.empty_like(q)
    blocks, lengths, lut, *maxima = inputs.collection()
    offsets = inputs.row_offsets
    cache = jnp.array(blocks)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(cache, lengths, lut, keys, values, q, rows):
        cache = append(cache, lengths, lut, *maxima, 1, keys, values, rows)
        out, _ = attend(
            cache, lengths, lut, *maxima, 1, q, rows, jnp.empty_like(q), jnp.empty((0, 4)), 0.25
        )
        return cache, out

    before = address(cache)
    cache, found = step(cache, lengths, lut, keys, values, q, offsets)
    assert address(cache) == before
    kvcache.ops.append(PARAMS)(inputs, 1, keys, values)
    kvcache.ops.attention(PARAMS, 4)(inputs, 1, q, out=out, scale=0.25)
    np.testing.assert_array_equal(cache, blocks)
    np.testing.assert_allclose(found, out, rtol=1e-5, atol=0 if target == "cpu" else 1e-5)
    assert target != "cpu" or (found == out).all()


def test_functions_for_a_gpu_lower_to_calls_in_place():
    """Lowers for CUDA, which needs no GPU: targets, aliases of the donated cache, and constants."""
    append = kvcache.jax.op(kvcache.ops.append(PARAMS, target="cuda:sm_90a"))

    @functools.partial(jax.jit, donate_argnums=0)
    def step(cache, lengths, lut, rows, offsets):
        for layer in range(2):
            cache = append(cache, lengths, lut, 1, 3, layer, rows, rows, offsets)
        return cache

    sizes = (8, *PARAMS.shape_per_block), (2,), (2, 4), (2, 2, 16), (3,)
    dtypes = np.float32, np.int32, np.int32, np.float32, np.int32
    shapes = [jax.ShapeDtypeStruct(size, dtype) for size, dtype in zip(sizes, dtypes)]
    name = f"kvcache.{Binding.of(kvcache.ops.append(PARAMS, target='cuda:sm_90a'), None, None).name}"
    checks = [jax.export.DisabledSafetyCheck.custom_call(name)]
    exported = jax.export.export(step, platforms=["cuda"], disabled_checks=checks)(*shapes)
    text = exported.mlir_module()
    assert text.count(f"stablehlo.custom_call @{name}(") == 2
    assert text.count("output_tuple_indices = [], operand_index = 0") == 2
    assert "a5 = 0 : i64" in text and "a5 = 1 : i64" in text
    assert "tf.aliasing_output = 0" in text


def test_functions_reject_arrays_of_another_platform():
    append = kvcache.jax.op(kvcache.ops.append(PARAMS, target="cuda:sm_90a"))
    with jax.default_device(jax.devices("cpu")[0]):
        rows, numbers = jnp.zeros((1, 2, 16)), jnp.zeros(1, jnp.int32)
        step = jnp.zeros((8, *PARAMS.shape_per_block)), numbers, numbers[None], 1, 3, 0, rows, rows, jnp.array([0, 1])
    with pytest.raises(ValueError, match="append is for 'cuda:sm_90a': expects arrays of a GPU, got one on .*(cpu|CPU)"):
        append(*step)
    with pytest.raises(jax.errors.JaxRuntimeError, match="No FFI handler registered for kvcache.append.* on a platform Host"):
        jax.jit(append, static_argnums=(3, 4, 5))(*step)


def test_errors():
    with pytest.raises(TypeError, match="argument 1 .'layer'. is a constant"):
        jax.jit(put)(jnp.zeros((5, 4)), 1, jnp.ones(4), 1.0)
    with pytest.raises(ValueError, match="put expects 4 arguments, got 2"):
        put(jnp.zeros((5, 4)), 1)
    with pytest.raises(ValueError, match="expects put to change an array"):
        kvcache.jax.op(program, "put", mutates=[])
    with pytest.raises(ValueError, match="'mutates' has y; the arrays of put are cache, x"):
        kvcache.jax.op(program, "put", mutates=["y"])
    with pytest.raises(jax.errors.JaxRuntimeError, match="expects an array of float32"):
        put(jnp.zeros((5, 4), jnp.int32), 1, jnp.ones(4), 1.0)


def test_step_inputs_read_arrays_of_the_host():
    params = kvcache.KVCacheParams("f32", 2, 8, page_size=4, total_num_layers=1)
    blocks = np.zeros((4, *params.shape_per_block), np.float32)
    rows = np.random.default_rng(0).standard_normal((2, 3, 2, 8)).astype(np.float32)

    def append(lengths):
        inputs = kvcache.StepInputs.of(
            blocks=blocks,
            lengths=jnp.asarray(lengths),
            lut=jnp.asarray([[1, 2, 0], [3, 0, 0]]),
            row_offsets=jnp.asarray([0, 2, 3]),
        )
        kvcache.ops.append(params)(inputs, 0, *rows)

    append([3, 0])
    np.testing.assert_array_equal(blocks[1, :, 0, 3], rows[:, 0])
    np.testing.assert_array_equal(blocks[2, :, 0, 0], rows[:, 1])
    np.testing.assert_array_equal(blocks[3, :, 0, 0], rows[:, 2])
    with pytest.raises(ValueError, match="got -1 for sequence 1"):
        append([3, -1])
    with pytest.raises(ValueError, match="sequence 0 to have at most 12 tokens, .* got 13"):
        append([11, 0])
