"""Tests of operations on the forms of a cache: tensors of their own for keys and values, and each kind of table.

The model places rows by loops over tokens, and computes attention in f64.
"""

import functools
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pytest
from devices import spread

import kvcache
from kvcache import KVCacheParams, KVCacheQuantizationConfig, Layout, StepInputs, describe

BF16, E4M3 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
PAGES, HEADS, WIDTH, LAYERS, LAYER, QUERY_HEADS = 9, 2, 32, 2, 1, 4
LENGTHS, NEW = np.array([5, 0, 3]), np.array([2, 3, 0])
OFFSETS = np.concatenate([[0], np.cumsum(NEW)])
TOTALS = LENGTHS + NEW


@dataclass(frozen=True)
class Form:
    """A form of a cache; ``value_width`` is None for a latent cache."""

    table: str = "dense"
    page_size: int = 4
    value_width: int | None = WIDTH
    separate: bool = True
    order: str = "page token head element"
    index: type = np.int32

    @functools.cached_property
    def heads(self):
        return 1 if self.value_width is None else HEADS

    def make_params(self, width):
        sizes = {"head": self.heads, "token": self.page_size, "page": PAGES, "element": width}
        tensor = np.zeros([sizes[dim] for dim in self.order.split()], BF16)
        return KVCacheParams(
            BF16, self.heads, width, page_size=self.page_size, total_num_layers=LAYERS,
            is_mla=self.value_width is None, layout=describe(tensor, self.order),
        )  # fmt: skip

    @functools.cached_property
    def params(self):
        return self.make_params(WIDTH)

    @functools.cached_property
    def options(self):
        if not self.separate:
            return {"table": self.table}
        own = {"value_params": self.make_params(self.value_width)} if self.value_width else {}
        return {"separate": True, "table": self.table, **own}


FORMS = {
    "SGLang": Form("rows", page_size=1, index=np.int64),
    "SGLang pages of int64": Form("dense", index=np.int64),
    "SGLang MLA": Form("rows", page_size=1, value_width=None),
    "FlashInfer NHD": Form("csr"),
    "FlashInfer HND": Form("csr", order="page head token element"),
    "values of 16": Form(value_width=16),
    "values of 48": Form("csr", value_width=48),
    "rows of pages": Form("rows"),
    "one tensor, csr": Form("csr", separate=False),
    "one tensor, rows": Form("rows", separate=False, index=np.int64),
    "latent, csr": Form("csr", value_width=None),
}


def make_pages(form, rng):
    """The pages of each sequence, all different; unused tokens have no page."""
    pages = rng.permutation(PAGES * 4 // form.page_size if form.page_size == 1 else PAGES)
    counts = -(-TOTALS // form.page_size)
    return np.split(pages[: counts.sum()], np.cumsum(counts)[:-1])


def make_table(form, pages):
    """The arrays of ``StepInputs.of`` for the pages of each sequence."""
    if form.table == "csr":
        indptr = 2 + np.concatenate([[0], np.cumsum([len(each) for each in pages])])
        return {"lut": np.concatenate([[7, 7], *pages]).astype(form.index), "indptr": indptr.astype(form.index)}
    rows = np.array([4, 0, 2]) if form.table == "rows" else np.arange(3)
    wide = np.zeros((6, 24), form.index)  # a table of more columns, and of more rows
    for row, each in zip(rows, pages):
        wide[row, : len(each)] = each
    if form.table == "rows":
        return {"lut": wide[:, :16], "table_rows": rows.astype(form.index)}
    return {"lut": wide[:3, :16]}


class Step:
    """A step on a cache with random contents, and its model."""

    def __init__(self, form, seed=0):
        rng = np.random.default_rng(seed)
        self.form, self.pages = form, make_pages(form, rng)
        self.widths = [WIDTH] if form.value_width is None else [WIDTH, form.value_width]
        pages = PAGES * 4 if form.page_size == 1 else PAGES
        sizes = {"page": pages, "token": form.page_size, "head": form.heads}
        order = form.order.split()
        if form.separate:
            self.tensors = [
                [self.draw(rng, [{**sizes, "element": width}[dim] for dim in order]) for _ in range(LAYERS)]
                for width in self.widths
            ]
            cache = {
                name: [self.view(tensor) for tensor in tensors]
                for name, tensors in zip(("keys", "values"), self.tensors)
            }
        else:
            blocks = self.draw(rng, (pages, 2, LAYERS, form.page_size, form.heads, WIDTH))
            self.tensors = [[blocks[:, role, layer] for layer in range(LAYERS)] for role in (0, 1)]
            cache = {"blocks": blocks}
        table = make_table(form, self.pages)
        step = {"lengths": LENGTHS.astype(form.index), "row_offsets": OFFSETS.astype(form.index), **table}
        self.inputs = StepInputs.of(**cache, **step)
        self.new = [self.draw(rng, (OFFSETS[-1], form.heads, width)) for width in self.widths]
        self.q = self.draw(rng, (OFFSETS[-1], QUERY_HEADS, WIDTH))

    def draw(self, rng, shape):
        return rng.standard_normal(shape).astype(BF16)

    def view(self, tensor):
        """A tensor of a layer as [pages, tokens, heads, elements]."""
        order = self.form.order.split()
        return tensor.transpose([order.index(dim) for dim in ("page", "token", "head", "element")])

    def rows(self, role, sequence, count):
        """The tokens of a sequence, [count, heads, elements], read one by one."""
        tensor = self.tensors[role][LAYER]
        tensor = self.view(tensor) if self.form.separate else tensor
        size = self.form.page_size
        return [tensor[self.pages[sequence][t // size], t % size] for t in range(count)]

    def snapshot(self):
        return [[tensor.copy() for tensor in tensors] for tensors in self.tensors]

    def append(self):
        """Appends the new rows to the model's tensors, in place."""
        for role, new in enumerate(self.new):
            for b in range(len(LENGTHS)):
                tokens = self.rows(role, b, TOTALS[b])[LENGTHS[b] :]
                for i, token in enumerate(tokens):
                    token[...] = new[OFFSETS[b] + i]

    def attend(self, scale):
        """Causal attention in f64."""
        width = WIDTH // 2 if self.form.value_width is None else self.form.value_width
        out = np.zeros((OFFSETS[-1], QUERY_HEADS, width))
        for b in range(len(LENGTHS)):
            keys = np.array(self.rows(0, b, TOTALS[b]), np.float64)
            values = keys if self.form.value_width is None else np.array(self.rows(1, b, TOTALS[b]), np.float64)
            for i in range(NEW[b]):
                for head in range(QUERY_HEADS):
                    seen = slice(0, LENGTHS[b] + i + 1), head * self.form.heads // QUERY_HEADS
                    scores = keys[seen] @ self.q[OFFSETS[b] + i, head].astype(np.float64) * scale
                    probs = np.exp(scores - scores.max())
                    out[OFFSETS[b] + i, head] = probs / probs.sum() @ values[seen][:, :width]
        return out


@functools.cache
def make_op(name, form, target, **options):
    return getattr(kvcache.ops, name)(form.params, target=target, **options, **form.options)


def check_bytes(found, expected):
    for role, (tensors, models) in enumerate(zip(found, expected)):
        for layer, (tensor, model) in enumerate(zip(tensors, models)):
            np.testing.assert_array_equal(tensor.view(np.uint16), model.view(np.uint16), f"{role}, {layer}")


@pytest.mark.parametrize(("name", "target"), spread(FORMS, with_cpu=True))
def test_operations_on_a_form_agree_with_the_model(name, target):
    form = FORMS[name]
    step, model = Step(form), Step(form)
    make_op("append", form, target)(step.inputs, LAYER, *step.new)
    model.append()
    check_bytes(step.tensors, model.tensors)

    outs = [np.ones((3, 8, form.heads, width), BF16) for width in step.widths]
    make_op("gather", form, target)(step.inputs, LAYER, *outs)
    for role, out in enumerate(outs):
        for b, total in enumerate(TOTALS):
            np.testing.assert_array_equal(out[b, :total], np.array(model.rows(role, b, total)).reshape(-1, *out.shape[2:]))
            assert not out[b, total:].astype(np.float32).any()

    value_dim = {"value_dim": WIDTH // 2} if form.value_width is None else {}
    attend = make_op("attention", form, target, query_heads=QUERY_HEADS, out_dtype="f32", **value_dim)
    expected = model.attend(0.25)
    out = np.zeros(expected.shape, np.float32)
    attend(step.inputs, LAYER, step.q, out=out, scale=0.25)
    np.testing.assert_allclose(out, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
@pytest.mark.parametrize("name", ["SGLang", "FlashInfer HND", "one tensor, csr", "latent, csr", "values of 16"])
def test_append_with_slots_needs_no_table(name, target):
    form = FORMS[name]
    step, model = Step(form), Step(form)
    cache = {"keys": step.inputs.key_blocks, "values": step.inputs.value_blocks}
    if not form.separate:
        cache = {"blocks": step.inputs.blocks}
    slots = np.array([17, 3, -1, 0, 30], np.int64)
    append = make_op("append", form, target, slots="i64")
    append(StepInputs.of(**cache), LAYER, *step.new, slots=slots)
    for tensors, new in zip(model.tensors, model.new):
        view = model.view(tensors[LAYER]) if form.separate else tensors[LAYER]
        for slot, row in zip(slots, new):
            if slot >= 0:
                view[slot // form.page_size, slot % form.page_size] = row
    check_bytes(step.tensors, model.tensors)
    end = len(step.inputs.key_blocks[0] if form.separate else step.inputs.blocks[0]) * form.page_size
    wrong = np.array([0, 1, 2, 3, end])
    with pytest.raises(ValueError, match=f"expects 'slots' to be below {end}, the slots of the cache's .* got {end}"):
        append(StepInputs.of(**cache), LAYER, *step.new, slots=wrong)
    with pytest.raises(kvcache.CheckError, match="page id is out of range"):
        make_op("append", form, target, slots="i64", bounds_checks=True)(
            StepInputs.of(**cache), LAYER, *step.new, slots=wrong
        )
    with pytest.raises(ValueError, match="expects 'slots' to have a row for each of 5 new tokens, got 4"):
        append(StepInputs.of(**cache), LAYER, *step.new, slots=slots[:4])


def test_copy_pages_needs_no_table():
    params = KVCacheParams(BF16, HEADS, WIDTH, page_size=4, total_num_layers=LAYERS)
    blocks = np.random.default_rng(0).standard_normal((PAGES, 2, LAYERS, 4, HEADS, WIDTH)).astype(BF16)
    expected = blocks.copy()
    expected[2] = expected[7]
    for table in ("dense", "csr", "rows"):
        copied = blocks.copy()
        inputs = StepInputs.of(blocks=copied)
        kvcache.ops.copy_pages(params, table=table)(inputs, np.array([[7, 2]], np.int32))
        np.testing.assert_array_equal(copied.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
def test_quantized_keys_and_values_of_different_types(target):
    """Keys of fp8 with scales, and values of bf16, in HND; written codes need no rounding."""
    config = KVCacheQuantizationConfig("f32", WIDTH)
    hnd = Layout.from_name("HND")
    keys = KVCacheParams(
        E4M3, HEADS, WIDTH, page_size=4, total_num_layers=1, kvcache_quant_config=config, layout=hnd,
        scale_layout=hnd,
    )  # fmt: skip
    values = KVCacheParams(BF16, HEADS, 16, page_size=4, total_num_layers=1)
    rng = np.random.default_rng(0)
    codes = rng.integers(-6, 7, (5, HEADS, WIDTH)).astype(np.float32)
    codes[..., 3] = 448
    scales = np.exp2(rng.integers(-3, 3, (5, HEADS, 1))).astype(np.float32)
    new_values = rng.standard_normal((5, HEADS, 16)).astype(BF16)
    pages = np.zeros((PAGES, HEADS, 4, WIDTH), E4M3)
    page_scales = np.zeros((PAGES, HEADS, 4, 1), np.float32)
    value_pages = np.zeros((PAGES, 4, HEADS, 16), BF16)
    slots = np.array([9, 20, 0, 33, 2], np.int32)
    inputs = StepInputs.of(
        keys=pages.transpose(0, 2, 1, 3), values=value_pages, key_scales=page_scales.transpose(0, 2, 1, 3)
    )
    append = kvcache.ops.append(
        keys, target, slots="i32", separate=True, value_params=values, dtype="bf16", table="csr"
    )
    append(inputs, 0, (codes * scales).astype(BF16), new_values, slots=slots)
    for slot, code, scale, value in zip(slots, codes, scales, new_values):
        page, token = divmod(slot, 4)
        np.testing.assert_array_equal(pages[page, :, token].astype(np.float32), code)
        np.testing.assert_array_equal(page_scales[page, :, token], scale)
        np.testing.assert_array_equal(value_pages[page, token], value)


def test_a_slice_of_a_larger_table_is_used_in_place():
    form = replace(FORMS["values of 16"], table="dense")
    step, model = Step(form), Step(form)
    wide = np.zeros((3, 40), np.int32)
    for row, pages in zip(wide, step.pages):
        row[: len(pages)] = pages
    inputs = StepInputs.of(
        keys=step.inputs.key_blocks, values=step.inputs.value_blocks, lut=wide[:, :5],
        lengths=LENGTHS.astype(np.int32), row_offsets=OFFSETS.astype(np.int32),
    )  # fmt: skip
    assert inputs.lut.base is wide
    unused = next(page for page in range(PAGES) if not any(page in pages for pages in step.pages))
    for each in (step, model):
        each.pages[1] = np.array([unused])
    wide[1, 0] = unused  # after the inputs were made
    make_op("append", form, "cpu")(inputs, LAYER, *step.new)
    model.append()
    check_bytes(step.tensors, model.tensors)


WRONG_TABLES = [
    ({"lut": None}, "expects 'lengths', 'lut' and 'row_offsets', or none of them for 'append' with slots, got no 'lut'"),
    ({"table_rows": [0, 1], "indptr": [0, 1, 2]}, "expects 'indptr' or 'table_rows', got both"),
    ({"table_rows": [0, 1, 2]}, "expects 'table_rows' of 2 for 2 sequences, got 3"),
    ({"table_rows": [0, 3]}, r"expects 'table_rows' to be in \[0, 3\), the rows of 'lut', got 3 for sequence 1"),
    ({"table_rows": [-1, 2]}, r"expects 'table_rows' to be in \[0, 3\), the rows of 'lut', got -1 for sequence 0"),
    ({"indptr": [0, 1]}, "expects 'lut' with 1 dimensions"),
    ({"indptr": [0, 1], "lut": [1, 2]}, "expects 'indptr' of 3 for 2 sequences, got 2"),
    ({"indptr": [0, 1, 3], "lut": [1, 2]}, "expects 'indptr' to end in the 2 entries of 'lut', got 3"),
    ({"indptr": [0, 2, 1], "lut": [1, 2]}, "expects 'indptr' not to be negative or to decrease"),
    ({"indptr": [-1, 0, 1], "lut": [1, 2]}, "expects 'indptr' not to be negative or to decrease"),
    ({"indptr": np.zeros(3), "lut": [1, 2]}, "expects 'indptr' to be an array of integers, got float64"),
    ({"blocks": np.zeros((1,) * 6)}, "expects 'blocks' or 'keys', got both"),
    ({"keys": ()}, "expects 'values', 'key_scales' and 'value_scales' only with 'keys'"),
    ({"values": [np.zeros((4, 2, 2, 8))] * 2}, "expects 'values' for 1 layers, got 2"),
    ({"keys": np.zeros((4, 8))}, r"expects 'keys' with 4 dimensions, got \(4, 8\)"),
    ({"values": 3}, "expects 'values' to be an array, got int"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), WRONG_TABLES)
def test_wrong_inputs_are_named(changes, message):
    given = {
        "keys": np.zeros((4, 2, 2, 8), np.float32),
        "values": np.zeros((4, 2, 2, 8), np.float32),
        "lengths": np.array([1, 0]),
        "row_offsets": np.array([0, 1, 2]),
        "lut": np.zeros((3, 4), np.int32),
    }
    if "table_rows" not in changes and "indptr" not in changes:
        given["lut"] = given["lut"][:2]
    given |= {name: np.array(array) if isinstance(array, list) and name not in ("keys", "values") else array
              for name, array in changes.items()}  # fmt: skip
    with pytest.raises((ValueError, TypeError), match=message):
        StepInputs.of(**given)


def test_inputs_of_another_form_are_rejected():
    params = KVCacheParams("f32", 2, 8, page_size=2, total_num_layers=1)
    separate, joined = kvcache.ops.append(params, separate=True), kvcache.ops.append(params)
    tensor, blocks = np.zeros((4, 2, 2, 8), np.float32), np.zeros((4, 2, 1, 2, 2, 8), np.float32)
    table = {"lengths": np.array([1]), "row_offsets": np.array([0, 1]), "lut": np.array([[1]])}
    keys, new = StepInputs.of(keys=tensor, values=tensor.copy(), **table), np.zeros((1, 2, 8), np.float32)
    for append, inputs, message in (
        (joined, keys, "made with separate=False: expects inputs of 'blocks', got 'keys'"),
        (separate, StepInputs.of(blocks=blocks, **table), "separate=True: expects inputs of 'keys', got 'blocks'"),
        (separate, StepInputs.of(keys=tensor, **table), "expects inputs with 'values'"),
        (joined, StepInputs.of(blocks=blocks), "expects inputs with 'lengths', 'lut' and 'row_offsets', got none"),
        (
            joined,
            StepInputs.of(blocks=blocks, **{**table, "lut": np.array([1]), "indptr": np.array([0, 1])}),
            "made with table='dense': expects inputs with such a table, got 'csr'",
        ),
        (separate, replace(keys, value_scales=(tensor,)), "expects 'inputs' with 0 tensors of scales, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            append(inputs, 0, new, new)
    with pytest.raises(ValueError, match=r"expects 'layer' to be in \[0, 1\), got 1"):
        separate(keys, 1, new, new)
    with pytest.raises(ValueError, match="expects 'device' to be 0 for keys and values by layer, got 1"):
        separate(keys, 0, new, new, device=1)
    with pytest.raises(ValueError, match="expects 'key_blocks' to share no memory with 'values'"):
        separate(keys, 0, new, tensor[:1, 0])
    crowded = StepInputs.of(keys=tensor, values=tensor.copy(), **{**table, "lengths": np.array([2])})
    with pytest.raises(ValueError, match="sequence 0 to have at most 2 tokens, those of the 1 pages of its row"):
        separate(crowded, 0, new, new)
    with pytest.raises(ValueError, match="argument 1 .'value_blocks'. expects"):
        separate(replace(keys, value_blocks=(np.zeros((4, 2, 2, 4), np.float32),)), 0, new, new)


def test_wrong_options_of_forms_are_named():
    params = KVCacheParams("f32", 2, 8, page_size=2)
    latent = KVCacheParams("f32", 1, 8, page_size=2, is_mla=True)
    for options, message in (
        ({"table": "sparse"}, "expects 'table' to be one of 'dense', 'csr', 'rows', got 'sparse'"),
        ({"value_params": params}, "expects 'value_params' only with 'separate'"),
        (
            {"separate": True, "value_params": replace(params, n_kv_heads=4)},
            r"expects 'n_kv_heads_per_device' of 'value_params' to be that of 'params' \(2\), got 4",
        ),
        (
            {"separate": True, "value_params": replace(params, page_size=4)},
            r"expects 'page_size' of 'value_params' to be that of 'params' \(2\), got 4",
        ),
        ({"separate": True, "value_params": latent}, "expects no 'value_params' for a latent cache"),
    ):
        with pytest.raises(ValueError, match=message):
            kvcache.ops.append(params, **options)
    with pytest.raises(ValueError, match=r"expects 'value_dim' to be at most 'head_dim' \(4\), got 5"):
        kvcache.ops.attention(params, 2, value_dim=5, separate=True, value_params=replace(params, head_dim=4))
    with pytest.raises(TypeError, match="expects 'separate' to be True or False, got 2"):
        kvcache.ops.append(params, separate=2)


@pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
def test_lengths_of_64_bits_mean_the_same(target):
    form = FORMS["FlashInfer NHD"]
    step = Step(form)
    attend = make_op("attention", form, target, query_heads=QUERY_HEADS, kv_lengths=True)
    outs = [np.zeros_like(step.q) for _ in range(2)]
    for out, dtype in zip(outs, (np.int32, np.int64)):
        attend(step.inputs, LAYER, step.q, out=out, scale=0.25, kv_lengths=np.array([6, 3, 2], dtype))
    np.testing.assert_array_equal(*(out.view(np.uint16) for out in outs))
    assert outs[0].any()
    for wrong, message in (
        ([2**40, 3, 2], f"expects the elements of 'kv_lengths' to have 32 bits, got {2**40}"),
        ([9, 3, 2], "expects 'kv_lengths' to be between 0 and 8, .* got 9 for sequence 0"),
    ):
        with pytest.raises(ValueError, match=message):
            attend(step.inputs, LAYER, step.q, out=outs[0], scale=0.25, kv_lengths=np.array(wrong))
