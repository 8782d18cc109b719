"""Programs of kvcache.attention with the regions ``score`` and ``mask``, and their model."""

from dataclasses import dataclass, field

import numpy as np
from attention_checks import LAYER

import kvcache

POSITIONS = "%sequence: index, %head: index, %query: index, %key: index"


@dataclass(frozen=True)
class Regions:
    """Regions, the arrays that they use, and the same in NumPy.

    ``model`` takes scores, sequence, head, query and key, which are arrays that broadcast, and
    the arrays by name, and returns scores and whether tokens are seen.
    """

    model: object
    score: str = ""
    mask: str = ""
    types: dict = field(default_factory=dict)
    attributes: str = ""

    @property
    def text(self):
        score = f"score {{\n^bb0(%s: f32, {POSITIONS}):{self.score}}}" if self.score else ""
        mask = f" mask {{\n^bb0({POSITIONS}):{self.mask}}}" if self.mask else ""
        return score + mask


def write_options(options):
    """The attributes split and config of the op, from the keywords of kvcache.ops.attention."""
    fields = {
        "split": {"split_tokens": "keys", "max_splits": "max", "split_rows": "rows"},
        "attention_config": {"swap_operands": "swap_ab", "tile_rows": "rows", "scheduled_blocks": "persistent"},
    }
    for (attribute, names), name in zip(fields.items(), ("split", "config")):
        given = [f"{field} = {options[option]}" for option, field in names.items() if option in options]
        text = ", ".join(given).replace("rows = 0", "mma = none")
        if given:
            yield f"{name} = #kvcache.{attribute}<{text}>"


def write_source(params, heads, dtype, regions, options, workspace):
    """The text of a function that attends to a layer."""
    kind = kvcache.dtypes.mlir_name(kvcache.dtypes.dtype(dtype))
    rows = f"memref<?x{heads}x{params.head_dim}x{kind}>"
    size = options.get("value_dim") or params.head_dim
    out, lse = f"memref<?x{heads}x{size}x{kind}>", f"memref<?x{heads}xf32>"
    numbers = "memref<?xi32>"
    types = {"blocks": params.blocks_type, "lengths": numbers, "lut": "memref<?x?xi32>"}
    scales = "" if params.kvcache_quant_config is None else " scales %scales"
    more = {"scales": params.scales_type} if scales else {}
    collection = ", ".join([*types.values(), *more.values()])
    types |= {"max_seq": "i32", "max_cache": "i32", **more}
    types |= {"layer": "index", "q": rows, "offsets": numbers, "scale": "f32", "out": out, "lse": lse}
    if workspace:
        types["workspace"] = "memref<?xi8>"
    types |= regions.types
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in types.items())
    roles = ["key"] if params.is_mla else ["key", "value"]
    views = "\n".join(
        f"%{role}_view = kvcache.paged_view {role} %cache[%layer] : {params.collection_type}"
        for role in roles
    )
    attributes = [regions.attributes.strip("{}"), *write_options(options)]
    all_types = [rows, *[params.cache_type] * len(roles), numbers, "f32", out, lse]
    all_types += ["memref<?xi8>"] * workspace
    return f"""
func.func @attention({arguments}) {{
  %cache = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq, %max_cache{scales}
    : {collection} -> {params.collection_type}
  {views}
  kvcache.attention %q, {', '.join(f'%{role}_view' for role in roles)}, %offsets, %scale
    outs(%out, %lse){' workspace %workspace' * workspace} {{{', '.join(filter(None, attributes))}}}
    {regions.text}
    : {', '.join(all_types)}
  return
}}
"""


def attend(params, dtype, inputs, group, regions, arrays, options, target, meter=False):
    """Returns queries, outputs, lse and the program, of a function that attends to a layer."""
    heads = group * params.n_kv_heads_per_device
    rng = np.random.default_rng(1)
    kind = kvcache.dtypes.dtype(dtype)
    total = len(inputs.tokens)
    q = (2 * rng.standard_normal((total, heads, params.head_dim))).astype(kind)
    size = options.get("value_dim") or params.head_dim
    out = np.full((total, heads, size), 7, kind)
    lse = np.full((total, heads), 7, np.float32)
    workspace = []
    if "max_splits" in options:
        rows = len(inputs.requests) * options["split_rows"] * options["max_splits"] * heads * (size + 2)
        workspace = [np.zeros(4 * rows + 16, np.int8)]
    source = write_source(params, heads, dtype, regions, options, len(workspace))
    program = kvcache.jit(source, target=target, opt_level=0, meter=meter or None)
    program.call(
        "attention", *inputs.collection(), LAYER, q, inputs.placed_offsets, params.head_dim**-0.5, out, lse,
        *workspace, *arrays.values(),
    )
    return q, out, lse, program


def model(q, keys, values, scale, number, regions, arrays):
    """Attention of the last rows of sequence ``number`` in f64."""
    rows, heads, _ = q.shape
    tokens = len(keys)
    group = heads // keys.shape[1]
    out, lse = np.zeros((rows, heads, values.shape[-1])), np.full((rows, heads), -np.inf)
    position = np.arange(tokens - rows, tokens)[:, None]
    for h in range(heads):
        scores = scale * q[:, h] @ keys[:, h // group].T
        changed, seen = regions.model(scores, number, h, position, np.arange(tokens), **arrays)
        changed = np.where(seen, changed, -np.inf)
        for i, row in enumerate(changed):
            if np.isfinite(row).any():
                weights = np.exp(row - row.max())
                out[i, h] = weights @ values[:, h // group] / weights.sum()
                lse[i, h] = row.max() + np.log(weights.sum())
    return out, lse
