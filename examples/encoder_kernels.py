"""MLIR of an encoder's attention through a paged cache.

`append` writes keys and values of a layer's new tokens into the pages. `attend` lets
every new token attend to its whole sequence, as encoders do: also to what comes later.
"""

import math

import cache_source


def source(params):
    """The source of both functions for a cache.

        append(collection…, layer, new_keys, new_values, row_offsets)
        attend(collection…, layer, queries, out, row_offsets)

    ``collection…`` is what ``kvcache.StepInputs.collection()`` gives. Arrays are f32
    [new tokens, heads, head_dim] with the sequences one after the other; row_offsets,
    u32 [batch + 1], says where each begins and where the last one ends.

    Args:
        params: The ``kvcache.KVCacheParams`` of the cache.
    """
    append = f"""
      %key = vector.load %new_keys[%row, %h, %c0] : !array, !head
      %value = vector.load %new_values[%row, %h, %c0] : !array, !head
      {cache_source.store(params, "%key", "%keys[%b, %h, %t, %c0]")}
      {cache_source.store(params, "%value", "%values[%b, %h, %t, %c0]")}"""
    arrays = "%new_keys: !array, %new_values: !array"
    result = "%queries: !array, %out: !array"
    return cache_source.module(
        params,
        for_each_head(params, "append", arrays, append),
        for_each_head(params, "attend", result, attention(params)),
    )


def for_each_head(params, name, arrays, body):
    """A function that does something for every new token and head of a ragged batch.

    The body finds the sequence in `%b`, the head in `%h`, the token in `%t`, its row in
    the arrays in `%row`, and in `%length` how many tokens the sequence has with it and
    all other new ones.
    """
    loops = f"""
  %batch = memref.dim %lengths, %c0 : memref<?xi32>
  scf.for %b = %c0 to %batch step %c1 {{
    %next = arith.addi %b, %c1 : index
    %begin_i32 = memref.load %row_offsets[%b] : memref<?xi32>
    %end_i32 = memref.load %row_offsets[%next] : memref<?xi32>
    %begin = arith.index_castui %begin_i32 : i32 to index
    %end = arith.index_castui %end_i32 : i32 to index
    %before = kvcache.cache_length %keys[%b] : !cache
    %new = arith.subi %end, %begin : index
    %length = arith.addi %before, %new : index
    scf.for %row = %begin to %end step %c1 {{
      %i = arith.subi %row, %begin : index
      %t = arith.addi %before, %i : index
      scf.for %h = %c0 to %heads step %c1 {{{body}
      }}
    }}
  }}"""
    parameters = f"{arrays}, %row_offsets: memref<?xi32>"
    return cache_source.function(params, name, parameters, loops)


def attention(params):
    """Attention of one token to all of its sequence, with an online softmax.

    Scores are in base 2: log2(e) is part of the scale.
    """
    scale = math.log2(math.e) * params.head_dim**-0.5
    return f"""
      %scale = arith.constant dense<{scale:.8e}> : !head
      %zeros = arith.constant dense<0.0> : !head
      %zero = arith.constant 0.0 : f32
      %lowest = arith.constant -1.0e30 : f32
      %raw_query = vector.load %queries[%row, %h, %c0] : !array, !head
      %query = arith.mulf %raw_query, %scale : !head
      %max, %sum, %acc = scf.for %s = %c0 to %length step %c1
          iter_args(%old_max = %lowest, %old_sum = %zero, %old_acc = %zeros)
          -> (f32, f32, !head) {{
        %key = kvcache.load %keys[%b, %h, %s, %c0] : !cache -> !head
        %value = kvcache.load %values[%b, %h, %s, %c0] : !cache -> !head
        %products = arith.mulf %query, %key : !head
        %score = vector.reduction <add>, %products fastmath<reassoc> : !head into f32

        %new_max = arith.maxnumf %old_max, %score : f32
        %max_change = arith.subf %old_max, %new_max : f32
        %shrink = math.exp2 %max_change : f32
        %distance = arith.subf %score, %new_max : f32
        %weight = math.exp2 %distance : f32

        %shrunk_sum = arith.mulf %old_sum, %shrink : f32
        %new_sum = arith.addf %shrunk_sum, %weight : f32
        %shrinks = vector.broadcast %shrink : f32 to !head
        %weights = vector.broadcast %weight : f32 to !head
        %shrunk_acc = arith.mulf %old_acc, %shrinks : !head
        %new_acc = math.fma %weights, %value, %shrunk_acc : !head
        scf.yield %new_max, %new_sum, %new_acc : f32, f32, !head
      }}
      %divisor = vector.broadcast %sum : f32 to !head
      %result = arith.divf %acc, %divisor : !head
      vector.store %result, %out[%row, %h, %c0] : !array, !head"""
