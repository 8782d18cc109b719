"""The MLIR of functions over a paged cache of any format.

Their text uses `!cache`, and vectors of a `!head` in f32, whose types come from
``kvcache.KVCacheParams``.
"""


def module(params, *functions):
    """The source of a module: the types of a cache, and functions over it.

    Args:
        params: The ``kvcache.KVCacheParams`` of the cache.
        functions: The results of ``function`` for the same parameters.
    """
    row = f"{params.n_kv_heads_per_device}x{params.head_dim}xf32"
    types = {
        "collection": params.collection_type,
        "cache": params.cache_type,
        "blocks": params.blocks_type,
        "array": f"memref<?x{row}>",
        "head": f"vector<{params.head_dim}xf32>",
        "narrow": f"vector<{params.head_dim}x{params.dtype_shorthand}>",
    }
    if params.kvcache_quant_config:
        types["scales"] = params.scales_type
    aliases = (f"!{name} = {type}" for name, type in types.items())
    return "\n".join([*aliases, *functions])


def function(params, name, parameters, body):
    """A function whose first operands are a collection's and a layer's number.

    The body can use the layer's `%keys` and `%values`, the number of heads `%heads`,
    and the constants `%c0` and `%c1`.
    """
    scaled = params.kvcache_quant_config is not None
    parameter, operand, operand_type = (
        (", %scales: !scales", " scales %scales", ", !scales")
        if scaled
        else ("", "", "")
    )
    return f"""
func.func @{name}(%blocks: !blocks, %lengths: memref<?xi32>, %lut: memref<?x?xi32>,
                  %max_seq: i32, %max_cache: i32{parameter}, %layer: index,
                  {parameters}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %heads = arith.constant {params.n_kv_heads_per_device} : index
  %collection = kvcache.paged_collection %blocks, %lengths, %lut, %max_seq,
      %max_cache{operand}
      : !blocks, memref<?xi32>, memref<?x?xi32>{operand_type} -> !collection
  %keys = kvcache.paged_view key %collection[%layer] : !collection
  %values = kvcache.paged_view value %collection[%layer] : !collection
  {body.strip()}
  return
}}"""


def tokens_per_scale(params):
    """The number of tokens that share scales, and are stored at once."""
    config = params.kvcache_quant_config
    return config.token_granularity if config else 1


def load_tokens(params, value):
    """Loads a `!head` of token `%t` of `%array`, or a row for each token of a group."""
    if tokens_per_scale(params) == 1:
        return f"{value} = vector.load %array[%t, %h, %c0] : !array, !head"
    return f"""{value}_padding = arith.constant 0.0 : f32
      {value} = vector.transfer_read %array[%t, %h, %c0], {value}_padding
        {{permutation_map = affine_map<(t, h, d) -> (t, d)>, in_bounds = [true, true]}}
        : !array, {stored_type(params)}"""


def stored_type(params):
    """The type of the values of one store."""
    tokens = tokens_per_scale(params)
    return "!head" if tokens == 1 else f"vector<{tokens}x{params.head_dim}xf32>"


def store(params, value, element, tensor_scale=""):
    """Stores values, rounded or quantized to the format of the cache.

    Args:
        value: The name of the values, such as `"%key"`: a `!head`, or a group of
            tokens.
        element: The place, such as `"%keys[%b, %h, %t, %c0]"`.
        tensor_scale: `" tensor_scale %s"`, if the whole array has a scale `%s`.
    """
    if params.kvcache_quant_config:
        place = f"{element}{tensor_scale}"
        return f"kvcache.store_quantized {value}, {place} : {stored_type(params)}, !cache"
    if params.dtype_shorthand == "f32":
        return f"kvcache.store {value}, {element} : !head, !cache"
    return f"""{value}_narrow = arith.truncf {value} : !head to !narrow
      kvcache.store {value}_narrow, {element} : !narrow, !cache"""
