"""Rows of caches in every format, and modules that append, gather and copy them.

The model is NumPy: rows are encoded by the formulas of ``quantization``, and placed by the lookup
table.
"""

import functools
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from model import FORMATS
from quantization import (
    ELEMENTS,
    SCALES,
    VALUES,
    dequantize_with_zero_points,
    divide_f32,
    pack,
    quantize,
    quantize_with_zero_points,
    unpack,
)

from kvcache import KVCacheParams, KVCacheQuantizationConfig, PagedKVCacheManager, dtypes

CPU = "cpu"
TARGETS = [CPU, "emulator:sm_80", "emulator:sm_90a", "emulator:sm_100a"]
LAYERS = 2
# A factor for each head.
STATIC_SCALES = np.array([0.3, 1.7, 0.9], np.float32)

# dtype, scale dtype, granularity, heads, head size, page size, tokens that share scales
FORMATS_OF_CACHES = {
    "bf16": ("bf16", None, None, 2, 64, 16),
    "f16": ("f16", None, None, 3, 40, 3),
    "f32": ("f32", None, None, 2, 32, 4),
    "f32-small": ("f32", None, None, 1, 16, 4),
    "fp8": ("f8E4M3FN", None, None, 2, 64, 16),
    "fp8-token": ("f8E4M3FN", "f32", 64, 2, 64, 16),
    "fp8-group": ("f8E5M2", "f16", 16, 2, 64, 4),
    "fp8-uneven": ("f8E4M3FN", "f32", 32, 2, 48, 16),
    "int8": ("i8", "bf16", 32, 2, 128, 16),
    "nvfp4": ("f4E2M1FN", "f8E4M3FN", 16, 2, 64, 16),
    "mxfp4": ("f4E2M1FN", "f8E8M0FNU", 32, 2, 64, 4),
    "int4-token": ("i4", "f16", 64, 2, 64, 16),
    "int4-group": ("i4", "bf16", 8, 2, 32, 4),
    "int4-uneven": ("i4", "f32", 24, 2, 40, 16),
    "mla": ("bf16", None, None, 1, 576, 16),
    "mla-fp8": ("f8E4M3FN", "f32", 64, 1, 576, 16),
}

# Only static scales, as in TensorRT-LLM.
STATIC = {"int8-static": ("i8", None, None, 2, 64, 16)}

# Their tokens are not appended one by one.
SHARED_BY_TOKENS = {
    "kivi": ("i4", "f16", 1, 2, 64, 16, 8),
    "kivi-page": ("i4", "bf16", 1, 3, 40, 4, 4),
    "channels": ("i8", "f32", 1, 2, 32, 16, 4),
}


def as_uint(array):
    return array.view(f"u{array.dtype.itemsize}")


def encode_rows(params, rows, power_of_two=False, static=None, least_amax=False):
    """Encodes rows [.., heads, head size] of f32 as in the cache: elements and scales."""
    config = params.kvcache_quant_config
    name = params.dtype_shorthand
    factor = None if static is None else static[:, None]
    if config is None and static is not None:
        return ELEMENTS[name].encode(ELEMENTS[name].round(divide_f32(rows, factor))), None
    if config is None:
        encoded = FORMATS[name].encode(rows.astype(np.float64))
        return encoded, None
    scale = dtypes.mlir_name(config.scale_dtype)
    granularity, element = config.quantization_granularity, ELEMENTS[name]
    if name == "i4":
        heads = rows.reshape(-1, 1, rows.shape[-1])
        parts = [quantize_with_zero_points(head, granularity, SCALES[scale]) for head in heads]
        elements = np.stack([part[0][0] for part in parts]).reshape(rows.shape)
        numbers = np.stack([np.concatenate(part[1:]) for part in parts])
        return pack(elements.astype(np.uint8)), SCALES[scale].encode(numbers).reshape(*rows.shape[:-1], -1)
    elements, scales = quantize(rows, granularity, element, SCALES[scale], factor, power_of_two, least_amax)
    encoded = ELEMENTS[name].encode(elements)
    if name == "f4E2M1FN":
        encoded = encoded[..., ::2] | (encoded[..., 1::2] << 4)
    return encoded, SCALES[scale].encode(scales)


def decode_rows(params, elements, scales, static=None):
    """Decodes stored elements and scales to rows, f32 [.., heads, head size]."""
    config = params.kvcache_quant_config
    if params.dtype_shorthand == "f4E2M1FN":
        nibbles = unpack(elements.view(np.uint8))
        elements = nibbles.astype(np.uint8).view(ml_dtypes.float4_e2m1fn)
    values = elements.astype(np.float32)
    if config is None:
        return values if static is None else values * static[:, None]
    group = np.arange(params.head_dim) // config.quantization_granularity
    if params.dtype_shorthand == "i4":
        elements = unpack(elements.view(np.uint8)).astype(np.float64)
        parts = [part[..., group] for part in np.split(scales.astype(np.float64), 2, axis=-1)]
        return dequantize_with_zero_points(elements, *parts, VALUES["f32"]).astype(np.float32)
    wide = scales.dtype if scales.dtype.itemsize > 1 and static is None else np.dtype(np.float32)
    factors = scales.astype(wide)
    if static is not None:
        factors = factors * static[:, None]
    return (values.astype(wide) * factors[..., group]).astype(wide).astype(np.float32)


# --- Caches of any format, layout and table -----------------------------------------------

LAYERS, LAYER, COLUMNS = 2, 1, 24


@dataclass(frozen=True, repr=False)
class Cache:
    """A cache and the text of its types."""

    params: KVCacheParams
    table_kind: str
    is_open: bool

    def __repr__(self):
        return f"{self._write(self.params.collection_type)} with pages of {self.params.page_size}"

    @functools.cached_property
    def roles(self):
        return ("key",) if self.params.is_mla else ("key", "value")

    def _write(self, text):
        """Writes a type for this table and page size."""
        size = self.params.page_size
        if self.is_open:
            text = text.replace(f"page_size = {size}", "page_size = ?")
            text = text.replace(f"x?x{size}x", "x?x?x", 1)
        if text.startswith("!") and self.table_kind != "dense":
            text = f"{text[:-1]}, table = {self.table_kind}>"
        return text

    @property
    def view_type(self):
        return self._write(self.params.cache_type)

    @property
    def is_scaled(self):
        return self.params.kvcache_quant_config is not None

    def declare(self, name):
        """Declares the arguments of a function for this cache, and the ops that make it."""
        collection = self._write(self.params.collection_type)
        types = {"blocks": self._write(self.params.blocks_type), "lengths": "memref<?xi32>"}
        types["table"] = "memref<?xi32>" if self.table_kind == "csr" else "memref<?x?xi32>"
        operands = [f"%{name}_{each}" for each in types]
        text, text_types = ", ".join(operands), ", ".join(types.values())
        if self.table_kind != "dense":
            types["index"] = "memref<?xi32>"
            text, text_types = f"{text} index %{name}_index", f"{text_types} index memref<?xi32>"
        text += f", %{name}_new, %{name}_longest"
        types |= {"new": "i32", "longest": "i32"}
        if self.is_scaled:
            types["scales"] = self._write(self.params.scales_type)
            text, text_types = f"{text} scales %{name}_scales", f"{text_types}, {types['scales']}"
        arguments = ", ".join(f"%{name}_{each}: {type}" for each, type in types.items())
        body = f"  %{name} = kvcache.paged_collection {text} : {text_types} -> {collection}\n"
        for role in self.roles:
            body += f"  %{name}_{role} = kvcache.paged_view {role} %{name}[%layer] : {collection}\n"
        return arguments, body

    def make_memory(self, pages, rng):
        """Makes blocks, and scales if there are any, of random bytes."""
        manager = PagedKVCacheManager(self.params, max_batch_size=1, max_seq_len=1, num_pages=pages - 1)
        tensors = [manager.blocks[0], *([manager.scales[0]] if self.is_scaled else [])]
        for tensor in tensors:
            bits = as_uint(tensor)
            bits[...] = rng.integers(0, np.iinfo(bits.dtype).max, bits.shape, bits.dtype)
        return tensors

    def write_table(self, table):
        """The table in the form of the type, with its index if it has one."""
        batch, used = table.shape
        wide = np.full((batch + 2, COLUMNS + used + -used % 8), 0, np.uint32)
        if self.table_kind == "csr":
            starts = np.arange(batch + 1, dtype=np.uint32) * used + 5
            return np.concatenate([wide[0, :5], table.ravel(), wide[0]]), starts
        order = np.arange(batch, dtype=np.uint32)
        if self.table_kind == "rows":
            order = order[::-1] + np.uint32(1)
        wide[order, :used] = table
        return (wide, order) if self.table_kind == "rows" else (wide[:batch],)

    def put(self, bits, role, place, encoded):
        """Writes an encoded row to copies of the memory, as integers."""
        for tensor, part in zip(bits, encoded):
            tensor[place[0], role, LAYER, place[1]] = part

    def get(self, tensors, role, places):
        """Reads the stored rows of places: elements, and scales or None."""
        pages, offsets = np.array(places, int).reshape(-1, 2).T
        found = [tensor[pages, role, LAYER, offsets] for tensor in tensors]
        return found if self.is_scaled else [*found, None]


def write_attributes(**values):
    """Writes attributes of an op: numbers, and flags that are set; None is left out."""
    given = {name: value for name, value in values.items() if value is not None and value is not False}
    said = [name if value is True else f"{name} = {value}" for name, value in given.items()]
    return f" {{{', '.join(said)}}}" if said else ""


def write_module(a, b, dense, out, options):
    """Writes functions that append to cache a, gather from it, copy it to cache b, and copy its pages."""
    roles, heads = a.roles, a.params.n_kv_heads_per_device
    element = f"{heads}x{a.params.head_dim}"
    rows = [f"%{role}s" for role in roles]
    views = [f"%a_{role}" for role in roles]
    scales = "".join(f" {role}_scale %{role}_scale" for role in roles) if options.static_a else ""
    factor = f"memref<{heads}xf32>"
    scale_types = [factor] * (len(roles) if options.static_a else 0)
    numbers = "memref<?xi32>"
    block_hint = {"block_threads": options.block_threads}
    hints = {**block_hint, "heads_per_thread": options.heads_per_thread}

    def function(name, caches, parameters, op):
        declared = [cache.declare(side) for side, cache in caches]
        arguments = ", ".join(text for text, _ in declared)
        body = "".join(text for _, text in declared)
        given = ", ".join(f"%{role}_scale: {factor}" for role in roles)
        return f"func.func @{name}({arguments}, %layer: index, {parameters}, {given}) {{\n{body}{op}  return\n}}\n"

    new = f"memref<?x{element}x{dense}>"
    slots = " slots %slots" if options.slots else ""
    slot_type = f"memref<?x{options.slots or 'i32'}>"
    types = [*[new] * len(roles), *[a.view_type] * len(roles), numbers]
    types += [slot_type] * bool(options.slots) + scale_types
    attributes = write_attributes(power_of_two=options.power_of_two, **block_hint)
    text = function(
        "append",
        [("a", a)],
        ", ".join([*(f"{each}: {new}" for each in rows), f"%rows: {numbers}, %slots: {slot_type}"]),
        f"  kvcache.append {', '.join(rows)} to {', '.join(views)} rows %rows{slots}{scales}{attributes}\n"
        f"      : {', '.join(types)}\n",
    )
    outs = f"memref<?x{'' if options.ragged else '?x'}{element}x{out}>"
    types = [*[a.view_type] * len(roles), numbers, *[outs] * len(roles)]
    types += [numbers] * options.ragged + scale_types
    ragged = " output_offsets %offsets" if options.ragged else ""
    text += function(
        "gather",
        [("a", a)],
        ", ".join([*(f"{each}: {outs}" for each in rows), f"%rows: {numbers}, %offsets: {numbers}"]),
        f"  kvcache.gather {', '.join(views)} rows %rows outs({', '.join(rows)}){ragged}{scales}"
        f"{write_attributes(**hints)}\n"
        f"      : {', '.join(types)}\n",
    )
    scales, types = "", [a.view_type, b.view_type, numbers, numbers]
    for name, static in (("source", options.static_a), ("target", options.static_b)):
        scales += f" {name}_scale %{{role}}_scale" if static else ""
        types += [factor] * static
    first, second, count = options.heads
    attributes = write_attributes(source_head=first, target_head=second, heads=count, **hints)
    copies = "".join(
        f"  kvcache.copy %a_{role} to %b_{role} begin %begin end %end{scales.format(role=role)}{attributes}\n"
        f"      : {', '.join(types)}\n"
        for role in roles
    )
    text += function("copy", [("a", a), ("b", b)], f"%begin: {numbers}, %end: {numbers}", copies)
    collection = a._write(a.params.collection_type)
    pages = f"  kvcache.copy_pages %a pairs %pairs{write_attributes(**block_hint)} : {collection}, memref<?x2xi32>\n"
    return text + function("copy_pages", [("a", a)], "%pairs: memref<?x2xi32>", pages)


def make_params(name):
    formats = FORMATS_OF_CACHES | STATIC | SHARED_BY_TOKENS
    dtype, scale, granularity, heads, size, page_size, *tokens = formats[name]
    zero_point = scale if dtype == "i4" else None
    config = KVCacheQuantizationConfig(scale, granularity, zero_point, *tokens) if scale else None
    return KVCacheParams(
        dtype, heads, size, page_size=page_size, total_num_layers=LAYERS,
        kvcache_quant_config=config, is_mla=name.startswith("mla"),
        enable_prefix_caching=False,
    )


def make_cache(name, lengths=(5, 0, 33, 2), new=(1, 7, 0, 3), seed=0):
    """Makes a manager with sequences of these lengths, and random bytes in its pages."""
    params = make_params(name)
    manager = PagedKVCacheManager(params, max_batch_size=8, max_seq_len=128, num_pages=64)
    rng = np.random.default_rng(seed)
    requests = [f"r{i}" for i in range(len(lengths))]
    for request, length, more in zip(requests, lengths, new):
        if length:
            manager.claim(request, np.arange(length))
            manager.inputs([request])
            manager.step([request])
        else:
            manager.claim(request)
        if more:
            manager.grow(request, np.arange(more))
    for tensor in (*manager.blocks, *manager.scales):
        values = rng.standard_normal(tensor.shape)
        tensor[...] = (np.abs(values) + 0.5 if tensor is not manager.blocks[0] else values * 3).astype(tensor.dtype)
    batch = [r for r, more in zip(requests, new) if more]
    return manager, manager.inputs(batch), [(length, m) for length, m in zip(lengths, new) if m]


def random_rows(params, total, dtype, seed=1):
    rng = np.random.default_rng(seed)
    shape = total, params.n_kv_heads_per_device, params.head_dim
    return rng.standard_normal(shape).astype(dtypes.dtype(dtype))


def rms(rows, weights, epsilon):
    size = len(weights)
    part = rows[..., :size]
    normed = part / np.sqrt((part**2).mean(-1, keepdims=True) + epsilon) * weights
    return np.concatenate([normed, rows[..., size:]], -1)
