//===- FragmentTileOps.td - Fragments and parts of tiles -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FRAGMENTTILEOPS_TD
#define KVCACHE_IR_FRAGMENTTILEOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// All threads of the team of a fragment execute an op on it together.

def KVCache_FragmentLoadOp : KVCache_Op<"fragment_load"> {
  let summary = "Loads a part of a tile into a fragment";
  let description = [{
    Loads the elements of a part of a tile, which begins at
    `[tile_row, tile_column]`. `mma_a16` and `wgmma_a16` are loaded by
    `ldmatrix`; other layouts by loads of the elements of a thread that lie side
    by side.

    With `repeated`, all rows of the fragment are row `tile_row` of the tile: a
    number for each column. A thread loads it once for all of its rows.

    With `paired`, the tile has the columns of each 16 in the order 0, 1, 4, 5,
    8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15. `ldmatrix` then loads
    `mma_a16_pairs`. For `mma_a16_quads`, column `16 s + 8 h + 2 l + e` of each
    32 has the number `8 l + 4 e + 2 s + h`.

    Elements of f8E4M3FN or f8E5M2 become f16 in registers, which is exact:
    `ldmatrix` gives a lane the four bytes of 16 that `mma_a16_pairs` has.

    Constraints:
    - (C1) the tile has the element type of the fragment, which has two
      dimensions and elements of whole bytes. A fragment of f16 that is
      `mma_a16_pairs` and not `paired` may have a tile of fp8.
    - (C2) the part is inside the tile. `tile_row` is a multiple of 8, except
      with `repeated`, and `tile_column` of 16 bytes. The bounds checks check
      values that are not constant.
    - (C3) `repeated` is for accumulators, and `paired` for `mma_a16_pairs` and
      `mma_a16_quads`.

    Example:

    ```mlir
    !tile = !kvcache.tile<16x128xbf16, swizzle_128b>
    !q = !kvcache.fragment<16x128xbf16, mma_a16>
    !scores = !kvcache.fragment<16x64xf32, mma_acc>
    !scales = !kvcache.tile<2x64xf32>

    func.func @load(%tile: !tile) -> !q {
      %c0 = arith.constant 0 : index
      %q = kvcache.fragment_load %tile[%c0, %c0] : !tile -> !q
      return %q : !q
    }

    func.func @scale(%scores: !scores, %tile: !scales, %row: index) -> !scores {
      %c0 = arith.constant 0 : index
      %scales = kvcache.fragment_load %tile[%row, %c0] {repeated}
          : !scales -> !scores
      %scaled = kvcache.map arith.mulf(%scores, %scales)
          : !scores, !scores -> !scores
      return %scaled : !scores
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_TileType, "the tile", [MemRead]>:$tile,
    Arg<Index, "the first row">:$tile_row,
    Arg<Index, "the first column">:$tile_column,
    KVCache_FragmentThread:$thread,
    UnitAttr:$repeated,
    UnitAttr:$paired
  );
  let results = (outs Res<KVCache_FragmentType, "the fragment">:$result);
  let assemblyFormat = [{
    $tile `[` $tile_row `,` $tile_column `]` (`thread` $thread^)? attr-dict `:`
    qualified(type($tile)) `->` qualified(type($result))
  }];
  let extraClassDeclaration = [{
    /// The part of the tile that the op reads.
    ::mlir::kvcache::MatrixPart getPart();
    /// Whether elements of 8 bits become f16.
    bool dequantizes();
  }];
  let hasVerifier = 1;
}

def KVCache_FragmentStoreOp : KVCache_Op<"fragment_store"> {
  let summary = "Stores a fragment into a part of a tile";
  let description = [{
    Stores the elements of a fragment into the part of a tile that begins at
    `[tile_row, tile_column]`. On chips from sm_90 on, `mma_a16` and `wgmma_a16`
    are stored by `stmatrix`. Other threads see them after a barrier; matrix
    instructions that read the tile need `nvvm.fence.proxy` before it, as `mma`
    says.

    With `transposed`, columns of the fragment are rows of the tile. A thread
    stores elements of a column that lie side by side at once, two of
    `wgmma_acc_t`.

    Constraints: (C1) and (C2) of `fragment_load`, for the transposed fragment
    if it is stored so.

    Example:

    ```mlir
    !tile = !kvcache.tile<64x128xbf16, swizzle_128b>
    !p = !kvcache.fragment<64x128xbf16, wgmma_a16>

    func.func @store(%probs: !p, %tile: !tile) {
      %c0 = arith.constant 0 : index
      kvcache.fragment_store %probs, %tile[%c0, %c0] : !p, !tile
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_FragmentType, "the fragment">:$value,
    Arg<KVCache_TileType, "the tile", [MemWrite]>:$tile,
    Arg<Index, "the first row">:$tile_row,
    Arg<Index, "the first column">:$tile_column,
    KVCache_FragmentThread:$thread,
    UnitAttr:$transposed
  );
  let assemblyFormat = [{
    $value `,` $tile `[` $tile_row `,` $tile_column `]` (`transposed` $transposed^)?
    (`thread` $thread^)? attr-dict `:` qualified(type($value)) `,`
    qualified(type($tile))
  }];
  let extraClassDeclaration = [{
    /// The part of the tile that the op writes.
    ::mlir::kvcache::MatrixPart getPart();
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_FRAGMENTTILEOPS_TD
