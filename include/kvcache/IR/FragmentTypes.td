//===- FragmentTypes.td - Matrices in registers -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FRAGMENTTYPES_TD
#define KVCACHE_IR_FRAGMENTTYPES_TD

include "kvcache/IR/TileTypes.td"

// Each layout is a row of the table in lib/IR/FragmentLayout.cpp.
def KVCache_MmaAcc : I32EnumAttrCase<"MmaAcc", 0, "mma_acc">;
def KVCache_MmaA16 : I32EnumAttrCase<"MmaA16", 1, "mma_a16">;
def KVCache_WgmmaAcc : I32EnumAttrCase<"WgmmaAcc", 2, "wgmma_acc">;
def KVCache_WgmmaA16 : I32EnumAttrCase<"WgmmaA16", 3, "wgmma_a16">;
def KVCache_WgmmaA8 : I32EnumAttrCase<"WgmmaA8", 4, "wgmma_a8">;
def KVCache_TmemAcc : I32EnumAttrCase<"TmemAcc", 5, "tmem_acc">;
def KVCache_WgmmaAccT : I32EnumAttrCase<"WgmmaAccT", 6, "wgmma_acc_t">;
def KVCache_MmaA16Pairs
    : I32EnumAttrCase<"MmaA16Pairs", 7, "mma_a16_pairs">;
def KVCache_MmaAccPairs
    : I32EnumAttrCase<"MmaAccPairs", 8, "mma_acc_pairs">;
def KVCache_TmemRow : I32EnumAttrCase<"TmemRow", 9, "tmem_row">;
def KVCache_MmaA16Quads
    : I32EnumAttrCase<"MmaA16Quads", 10, "mma_a16_quads">;
def KVCache_MmaAccQuads
    : I32EnumAttrCase<"MmaAccQuads", 11, "mma_acc_quads">;
def KVCache_FragmentLayout : I32EnumAttr<"FragmentLayout",
    "which elements of a matrix a thread has", [
    KVCache_MmaAcc, KVCache_MmaA16, KVCache_WgmmaAcc, KVCache_WgmmaA16,
    KVCache_WgmmaA8, KVCache_TmemAcc, KVCache_WgmmaAccT, KVCache_MmaA16Pairs,
    KVCache_MmaAccPairs, KVCache_TmemRow, KVCache_MmaA16Quads,
    KVCache_MmaAccQuads]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}

def KVCache_ReduceAddF : I32EnumAttrCase<"AddF", 0, "addf">;
def KVCache_ReduceMaxNumF : I32EnumAttrCase<"MaxNumF", 1, "maxnumf">;
def KVCache_ReduceMinNumF : I32EnumAttrCase<"MinNumF", 2, "minnumf">;
def KVCache_ReduceMaximumF : I32EnumAttrCase<"MaximumF", 3, "maximumf">;
def KVCache_ReduceMinimumF : I32EnumAttrCase<"MinimumF", 4, "minimumf">;
def KVCache_ReduceAddI : I32EnumAttrCase<"AddI", 5, "addi">;
def KVCache_ReduceMaxSI : I32EnumAttrCase<"MaxSI", 6, "maxsi">;
def KVCache_ReduceMinSI : I32EnumAttrCase<"MinSI", 7, "minsi">;
def KVCache_Reduction : I32EnumAttr<"Reduction", "how elements are combined", [
    KVCache_ReduceAddF, KVCache_ReduceMaxNumF, KVCache_ReduceMinNumF,
    KVCache_ReduceMaximumF, KVCache_ReduceMinimumF,
    KVCache_ReduceAddI, KVCache_ReduceMaxSI, KVCache_ReduceMinSI]> {
  let cppNamespace = "::mlir::kvcache";
}

def KVCache_SchedulePipelined : I32EnumAttrCase<"Pipelined", 0, "pipelined">;
def KVCache_SchedulePingPong : I32EnumAttrCase<"PingPong", 1, "ping_pong">;
def KVCache_SchedulePrefetch : I32EnumAttrCase<"Prefetch", 2, "prefetch">;
def KVCache_ScheduleSeesaw : I32EnumAttrCase<"Seesaw", 3, "seesaw">;
def KVCache_ScheduleRoles : I32EnumAttrCase<"Roles", 4, "roles">;
def KVCache_SchedulePair : I32EnumAttrCase<"Pair", 5, "pair">;
def KVCache_Schedule : I32EnumAttr<"Schedule", "overlap of products", [
    KVCache_SchedulePipelined, KVCache_SchedulePingPong,
    KVCache_SchedulePrefetch, KVCache_ScheduleSeesaw,
    KVCache_ScheduleRoles, KVCache_SchedulePair]> {
  let cppNamespace = "::mlir::kvcache";
  let genSpecializedAttr = 0;
}
def KVCache_ScheduleAttr
    : EnumAttr<KVCache_Dialect, KVCache_Schedule, "schedule"> {
  let summary = "How a loop over tiles overlaps products";
  let description = [{
    The attribute `kvcache.schedule` of an `scf.for` that consumes a tile of keys
    and a tile of values in each iteration. `kvcache-schedule-attention` rotates
    the loop:

    - `pipelined`: the product QK of a tile starts before PV of the tile before,
      and the softmax is computed while PV is in flight.
    - `ping_pong`: the same, and two warpgroups start their products in turns.
    - `prefetch`: the loop stays as it is. It copies the next tiles while it
      multiplies.
    - `seesaw`: the loop stays as it is. Two warpgroups compute the scores of a
      tile in turns, as `kvcache-tile-attention` writes it for latent caches.
    - `roles`: the loop stays as it is. It has the softmax of one of two query
      tiles, and a warp of its own starts the products of both.
    - `pair`: the loop stays as it is. Both thread blocks of a cluster multiply
      together.

    Example:

    ```mlir
    #overlap = #kvcache.schedule<ping_pong>
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
}

def KVCache_FragmentType : KVCache_Type<"Fragment", "fragment", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>]> {
  let summary = "matrix in the registers of a team of threads";
  let description = [{
    A matrix, or a column of one number for each of its rows, in the registers
    of a *team*: a warp, the four warps of a warpgroup, or two warpgroups. The
    layout says which elements each thread has. It is that of an operand of a
    matrix instruction (PTX ISA, "Matrix Fragments"), or of a load from tensor
    memory:

    | layout | team, rows | columns | for |
    | --- | --- | --- | --- |
    | `mma_acc` | warp, 16 | a multiple of 8 | C and D of `mma.sync` |
    | `mma_a16` | warp, 16 | a multiple of 16 | A of `mma.sync`, of 16 bits |
    | `wgmma_acc` | warpgroup, 64 | a multiple of 8 | C and D of `wgmma` |
    | `wgmma_a16` | warpgroup, 64 | a multiple of 16 | A of `wgmma`, of 16 bits |
    | `wgmma_a8` | warpgroup, 64 | a multiple of 32 | A of `wgmma`, of 8 bits |
    | `tmem_acc` | warpgroup, 64; two, 128 | a multiple of 8 | `tmem_load` |
    | `wgmma_acc_t` | warpgroup, a multiple of 8 up to 256 | a multiple of 64 | C and D of `wgmma`, transposed |
    | `mma_a16_pairs` | warp, 16 | a multiple of 16 | A, with B of 8 bits |
    | `mma_acc_pairs` | warp, 16 | a multiple of 16 | C and D, with B of 8 bits |
    | `mma_a16_quads` | warp, 16 | a multiple of 32 | A, with B of 4 bits |
    | `mma_acc_quads` | warp, 16 | a multiple of 32 | C and D, with B of 4 bits |
    | `tmem_row` | warpgroup, 128 | a multiple of 4 | `tmem_load`, a row for each thread |

    Lane l of warp w of a team has these elements, where i counts the elements
    of a thread:

    | layout | row | column |
    | --- | --- | --- |
    | `mma_acc`, `mma_a16` | `l / 4 + 8 (i / 2 % 2)` | `8 (i / 4) + 2 (l % 4) + i % 2` |
    | `wgmma_acc`, `wgmma_a16` | the same `+ 16 w` | the same |
    | `tmem_acc` of 64 rows | the same `+ 16 w` | the same |
    | `tmem_acc` of 128 rows | the same `+ 32 (w % 4) + 16 (w / 4)` | the same |
    | `wgmma_a8` | `16 w + l / 4 + 8 (i / 4 % 2)` | `16 (i / 8) + 4 (l % 4) + i % 4` |
    | `mma_a16_pairs` | `l / 4 + 8 (i / 2 % 2)` | `16 (i / 8) + 4 (l % 4) + 2 (i / 4 % 2) + i % 2` |
    | `mma_acc_pairs` | the same | `16 (i / 8) + 4 (l % 4) + 2 (i % 2) + i / 4 % 2` |
    | `mma_a16_quads`, `mma_acc_quads` | the same | `32 (i / 16) + 8 (l % 4) + 4 (i % 2) + i / 4 % 4` |
    | `tmem_row` | `32 w + l` | `i` |
    | `wgmma_acc_t` of r rows | `8 (i / 4 % (r / 8)) + 2 (l % 4) + i % 2` | `64 (2 i / r) + 16 w + l / 4 + 8 (i / 2 % 2)` |

    The rows of `wgmma_acc_t` are the columns of what `wgmma` computes, so that
    few rows take few registers. All warps share a row.

    A fragment of one dimension has a number for each row, which all lanes that
    share the row have. If it is `partial`, each of these lanes has a share of
    the number: `reduce` combines them.

    A fragment lives in registers, so functions, branches and regions of `scf`
    ops pass it on, and no memory keeps it. `kvcache-lower-fragments` makes a
    scalar of each element of a thread, or a word of 32 bits of elements that
    are in an operand of smaller ones.

    Constraints:
    - (C1) the shape has the rows of the table, and either columns as in the
      table or no second dimension.
    - (C2) elements are floats or signless integers of 1 to 32 bits, of 16 bits
      in `mma_a16`, `mma_a16_pairs`, `mma_a16_quads` and `wgmma_a16`, and of 8
      bits in `wgmma_a8`.
    - (C3) a `partial` fragment has one dimension and an accumulator's layout.

    Example:

    ```mlir
    !scores = !kvcache.fragment<64x128xf32, wgmma_acc>
    !probs = !kvcache.fragment<64x128xbf16, wgmma_a16>
    !row_max = !kvcache.fragment<64xf32, wgmma_acc>
    !row_sum = !kvcache.fragment<64xf32, wgmma_acc, partial>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    "::mlir::kvcache::FragmentLayout":$layout,
    DefaultValuedParameter<"bool", "false">:$partial
  );
  let assemblyFormat = [{
    `<` custom<Box>($shape, $elementType) `,` $layout
    `` custom<Partial>($partial) `>`
  }];
  let extraClassDeclaration = [{
    bool hasColumns() const { return getShape().size() == 2; }
    int64_t getRows() const { return getShape().front(); }
    /// The columns of a matrix.
    int64_t getColumns() const { return getShape().back(); }
    /// Returns the type of a number for each row.
    FragmentType getRowType(bool isPartial = false) const;
  }];
}

def KVCache_InFlightType : KVCache_Type<"InFlight", "in_flight", [
    DeclareTypeInterfaceMethods<KVCache_ExpandableTypeInterface>]> {
  let summary = "product of matrices that is being computed";
  let description = [{
    What `fragment_mma` returns: an accumulator whose registers a matrix
    instruction still writes. Only `fragment_wait`, and the `add` of a next
    `fragment_mma`, take it; loops and branches pass it on.

    Constraints:
    - (C1) the shape and the layout are those of a fragment of two dimensions,
      in the layout of an accumulator in registers: not `tmem_acc`, `tmem_row`.
    - (C2) the element type is f32, f16 or i32.

    Example:

    ```mlir
    !product = !kvcache.in_flight<64x128xf32, wgmma_acc>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    "::mlir::kvcache::FragmentLayout":$layout
  );
  let assemblyFormat =
      "`<` custom<Box>($shape, $elementType) `,` $layout `>`";
  let extraClassDeclaration = [{
    int64_t getRows() const { return getShape().front(); }
    int64_t getColumns() const { return getShape().back(); }
    /// The product when it is complete.
    FragmentType getComplete() const;
  }];
}

#endif // KVCACHE_IR_FRAGMENTTYPES_TD
