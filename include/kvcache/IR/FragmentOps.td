//===- FragmentOps.td - Matrices in registers -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FRAGMENTOPS_TD
#define KVCACHE_IR_FRAGMENTOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// All threads of the team of a fragment execute an op on it together. A team is
// an aligned warp or warpgroup of a block.

def KVCache_OpaqueThreadOp : KVCache_Op<"opaque_thread", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Makes the number of a thread opaque to compilers";
  let description = [{
    Returns the number of the thread in its block, x fastest. Compilers do not
    find that it is the same at each execution. After it, to the end of its
    block and in the regions of ops there, the places of a thread's elements are
    computed from it. So no register keeps these places across the op: in a loop
    over tiles, for example.

    All threads of a warp execute it together: the lowering is a shuffle.

    Example:

    ```mlir
    !s = !kvcache.fragment<16x64xf32, wgmma_acc_t>

    func.func @scale(%scores: !s, %factors: memref<?xf32>, %tiles: index) -> !s {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %all = scf.for %j = %c0 to %tiles step %c1 iter_args(%s = %scores) -> (!s) {
        %thread = kvcache.opaque_thread : index
        %scaled = kvcache.map %s at(%c0, %c0) : !s -> !s {
        ^bb0(%score: f32, %row: index, %column: index):
          %factor = memref.load %factors[%row] : memref<?xf32>
          %product = arith.mulf %score, %factor : f32
          kvcache.yield %product : f32
        }
        scf.yield %scaled : !s
      }
      return %all : !s
    }
    ```
  }];
  let results = (outs Res<Index, "the number of the thread">:$thread);
  let assemblyFormat = "attr-dict `:` type($thread)";
}

def KVCache_SplatOp : KVCache_Op<"splat", [
    Pure, TypesMatchWith<"'value' has the element type of 'result'", "result",
                         "value", "::llvm::cast<::mlir::kvcache::FragmentType>("
                                  "$_self).getElementType()">]> {
  let summary = "Makes a fragment of equal elements";
  let description = [{
    Each element is the value, which is the same in all threads of the team. In
    a `partial` fragment, the share of each lane is the value, so it should be
    the neutral value of what `reduce` does.

    Example:

    ```mlir
    func.func @zeros(%zero: f32) -> !kvcache.fragment<64x128xf32, wgmma_acc> {
      %sums = kvcache.splat %zero : !kvcache.fragment<64x128xf32, wgmma_acc>
      return %sums : !kvcache.fragment<64x128xf32, wgmma_acc>
    }
    ```
  }];
  let arguments = (ins Arg<AnyType, "the elements">:$value);
  let results = (outs Res<KVCache_FragmentType, "the fragment">:$result);
  let assemblyFormat = "$value attr-dict `:` qualified(type($result))";
}

def KVCache_MapOp : KVCache_Op<"map", [
    AttrSizedOperandSegments, RecursiveMemoryEffects, RecursivelySpeculatable,
    SingleBlock]> {
  let summary = "Computes each element of a fragment";
  let description = [{
    The region computes an element of the result from the elements of the
    operands in the same row and column. An operand of one dimension is the same
    in all columns. With `at`, two more arguments are the row and the column of
    the element, as numbers of the matrix plus the two operands; of a result of
    one dimension, only the row.

    The lowering emits what depends on neither row nor column once for a thread,
    what depends on the row alone once for each row of the thread, and likewise
    for columns.

    With `lane_columns`, two numbers replace the column: that of the thread's
    first element, and the distance of the element from it, a constant. A
    comparison of the distance with a bound less the first number takes no
    register for each column.

    A region of one op, whose operands are the arguments in order, may be
    written by its name before the operands in parentheses.

    Syntax:

    ```
    operation ::= `kvcache.map` $fragments (`at` `(` $row (`,` $column)? `)`)?
                  attr-dict `:` type($fragments) `->` type($result) $body
                | `kvcache.map` name-of-op `(` $fragments `)` attr-dict `:`
                  type($fragments) `->` type($result)
    ```

    A `partial` operand is a share of a number, so the map must be linear in it.

    Constraints:
    - (C1) there are operands. Those of two dimensions have the layout and the
      shape of the result. Those of one dimension have its layout, or another
      one whose threads have the same rows. The result has two dimensions if an
      operand has.
    - (C2) `at` has a row, and a column if the result has two dimensions.
      `lane_columns` needs a column.
    - (C3) the arguments of the region are an element of each operand, and the
      indices of `at`. It yields an element of the result.
    - (C4) the ops of the region at most read memory, are no calls, and have no
      fragments.
    - (C5) the result is `partial` if an operand is, and only then. The region is
      then one `arith.mulf`, of the element of the only `partial` operand and
      another value.

    Example:

    ```mlir
    !s = !kvcache.fragment<64x128xf32, wgmma_acc>
    !row = !kvcache.fragment<64xf32, wgmma_acc>
    !ends = !kvcache.fragment<64xi32, wgmma_acc>

    func.func @mask(%scores: !s, %ends: !ends, %low: f32) -> !s {
      %c0 = arith.constant 0 : index
      %seen = kvcache.map %scores, %ends at(%c0, %c0) {lane_columns}
          : !s, !ends -> !s {
      ^bb0(%score: f32, %end: i32, %row: index, %first: index, %distance: index):
        %start = arith.index_cast %first : index to i32
        %number = arith.index_cast %distance : index to i32
        %bound = arith.subi %end, %start : i32
        %sees = arith.cmpi slt, %number, %bound : i32
        %masked = arith.select %sees, %score, %low : f32
        kvcache.yield %masked : f32
      }
      return %seen : !s
    }

    func.func @weigh(%scores: !s, %max: !row, %alpha: !row, %sums: !s,
                     %first: index, %key: index, %low: f32) -> (!s, !s) {
      %c0 = arith.constant 0 : index
      %weights = kvcache.map %scores, %max at(%first, %key) : !s, !row -> !s {
      ^bb0(%score: f32, %most: f32, %query: index, %token: index):
        %sees = arith.cmpi ule, %token, %query : index
        %seen = arith.select %sees, %score, %low : f32
        %less = arith.subf %seen, %most : f32
        %weight = math.exp2 %less : f32
        kvcache.yield %weight : f32
      }
      %scaled = kvcache.map arith.mulf(%sums, %alpha) : !s, !row -> !s
      return %weights, %scaled : !s, !s
    }
    ```
  }];
  let arguments = (ins
    Arg<Variadic<KVCache_FragmentType>, "the fragments">:$fragments,
    Arg<Optional<Index>, "the number of row 0">:$row,
    Arg<Optional<Index>, "the number of column 0">:$column,
    UnitAttr:$lane_columns
  );
  let results = (outs Res<KVCache_FragmentType, "the fragment">:$result);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KVCache_ReduceOp : KVCache_Op<"reduce", [
    AttrSizedOperandSegments, ConditionallySpeculatable,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    OptionalTypesMatchWith<"'init' has the type of 'result'", "result", "init",
                           "$_self">]> {
  let summary = "Combines the elements of each row of a fragment";
  let description = [{
    Combines the elements of a row, and the element of `init`, if it is there.
    A result that is not `partial` is combined over the lanes that share the
    row; a `partial` one has each lane's share, and costs no shuffles. A
    `partial` source becomes its rows' numbers.

    A thread combines its elements from the lowest column on: sums one after the
    other, and other kinds two at a time. Then lanes exchange, the nearest first.
    So the order does not depend on other rows.

    Warps that share rows exchange through `scratch`: each stores its numbers,
    all threads of the block wait at a barrier, and each combines the numbers of
    the warps in their order. The team is then all of the block. Until the next
    barrier, no thread stores into the tile.

    Constraints:
    - (C1) the source has two dimensions, or is `partial`. The result has its
      element type, layout and rows, and one dimension.
    - (C2) the result of a `partial` source is not `partial`.
    - (C3) `kind` is the name of the op of `arith` that combines two elements:
      `addf`, `maxnumf`, `minnumf`, `maximumf` or `minimumf` for f16, bf16 and
      f32, and `addi`, `maxsi` or `minsi` for integers. Elements have 32 bits
      unless the result is `partial`: shuffles between lanes have.
    - (C4) a sum has an `init` only if its result is `partial`: otherwise each
      lane would add it.
    - (C5) there is a `scratch` if warps share rows, as in `wgmma_acc_t`, and the
      result is not `partial`, and only then. It has no swizzle, a row for each
      warp, a column for each row of the fragment, and its elements.

    Example:

    ```mlir
    !s = !kvcache.fragment<64x128xf32, wgmma_acc>
    !row = !kvcache.fragment<64xf32, wgmma_acc>
    !share = !kvcache.fragment<64xf32, wgmma_acc, partial>

    func.func @rows(%scores: !s, %old: !row, %sum: !share) -> (!row, !row) {
      %max = kvcache.reduce maxnumf %scores from %old : !s -> !row
      %added = kvcache.reduce addf %scores from %sum : !s -> !share
      %total = kvcache.reduce addf %added : !share -> !row
      return %max, %total : !row, !row
    }
    ```
  }];
  let arguments = (ins
    KVCache_Reduction:$kind,
    Arg<KVCache_FragmentType, "the fragment">:$source,
    Arg<Optional<KVCache_FragmentType>, "the first element of each row">:$init,
    Arg<Optional<KVCache_TileType>, "the numbers of each warp">:$scratch
  );
  let results = (outs Res<KVCache_FragmentType, "a number for each row">:$result);
  let assemblyFormat = [{
    $kind $source (`from` $init^)? (`across` $scratch^)? attr-dict `:`
    qualified(type($source)) (`,` qualified(type($scratch))^)? `->`
    qualified(type($result))
  }];
  let extraClassDeclaration = [{
    /// Whether combining an element twice changes nothing.
    bool isIdempotent();
    ::mlir::Speculation::Speculatability getSpeculatability();
  }];
  let hasVerifier = 1;
}

def KVCache_WarpAnyOp : KVCache_Op<"warp_any", [Pure]> {
  let summary = "Finds whether an element of a warp is true";
  let description = [{
    Returns whether an element is true in a row that a lane of the warp has. All
    threads of a warp get one result, and other warps of the team others. So a
    branch on it does not part the lanes of a warp.

    Constraints:
    - (C1) the fragment has one dimension, elements of i1, and is not `partial`.

    Example:

    ```mlir
    !s = !kvcache.fragment<16x64xf32, mma_acc>
    !row = !kvcache.fragment<16xf32, mma_acc>
    !flags = !kvcache.fragment<16xi1, mma_acc>

    func.func @rescale(%grows: !flags, %factors: !row, %sums: !s) -> !s {
      %any = kvcache.warp_any %grows : !flags
      %scaled = scf.if %any -> (!s) {
        %product = kvcache.map arith.mulf(%sums, %factors) : !s, !row -> !s
        scf.yield %product : !s
      } else {
        scf.yield %sums : !s
      }
      return %scaled : !s
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_FragmentType, "a flag of each row">:$flags);
  let results = (outs Res<I1, "whether a flag is true">:$result);
  let assemblyFormat = "$flags attr-dict `:` qualified(type($flags))";
  let hasVerifier = 1;
}

def KVCache_ToOperandOp : KVCache_Op<"to_operand", [Pure]> {
  let summary = "Makes an accumulator the left operand of a product";
  let description = [{
    Rounds the elements to the smaller type, to nearest even, in the registers
    where they are: each thread keeps its elements.

    Constraints:
    - (C1) the shapes are equal, and `result` has the layout of operands for the
      same instruction whose threads have the same elements: `mma_a16` for
      `mma_acc`, and `wgmma_a16` for `wgmma_acc`.
    - (C2) the elements are floats, of the source f32 or those of the result.

    Example:

    ```mlir
    !s = !kvcache.fragment<64x128xf32, wgmma_acc>
    !p = !kvcache.fragment<64x128xbf16, wgmma_a16>

    func.func @round(%probs: !s) -> !p {
      %left = kvcache.to_operand %probs : !s -> !p
      return %left : !p
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_FragmentType, "the accumulator">:$source);
  let results = (outs Res<KVCache_FragmentType, "the operand">:$result);
  let assemblyFormat = [{
    $source attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def KVCache_FragmentLoadOp : KVCache_Op<"fragment_load"> {
  let summary = "Loads a part of a tile into a fragment";
  let description = [{
    Loads the elements of a part of a tile, which begins at `[tile_row, tile_column]`.
    `mma_a16` and `wgmma_a16` are loaded by `ldmatrix`; other layouts by loads of
    the elements of a thread that lie side by side.

    With `repeated`, all rows of the fragment are row `tile_row` of the tile: a
    number for each column. A thread loads it once for all of its rows.

    With `paired`, the tile has the columns of each 16 in the order 0, 1, 4, 5,
    8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15. `ldmatrix` then loads
    `mma_a16_pairs`.

    Constraints:
    - (C1) the tile has the element type of the fragment, which has two
      dimensions and elements of whole bytes.
    - (C2) the part is inside the tile. `tile_row` is a multiple of 8, except
      with `repeated`, and `tile_column` of 16 bytes. The bounds checks check
      values that are not constant.
    - (C3) `repeated` is for accumulators, and `paired` for `mma_a16_pairs`.

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
    UnitAttr:$repeated,
    UnitAttr:$paired
  );
  let results = (outs Res<KVCache_FragmentType, "the fragment">:$result);
  let assemblyFormat = [{
    $tile `[` $tile_row `,` $tile_column `]` attr-dict `:` qualified(type($tile)) `->`
    qualified(type($result))
  }];
  let extraClassDeclaration = [{
    /// The part of the tile that the op reads.
    ::mlir::kvcache::MatrixPart getPart();
  }];
  let hasVerifier = 1;
}

def KVCache_FragmentStoreOp : KVCache_Op<"fragment_store"> {
  let summary = "Stores a fragment into a part of a tile";
  let description = [{
    Stores the elements of a fragment into the part of a tile that begins at
    `[tile_row, tile_column]`. Other threads see them after a barrier; matrix instructions
    that read the tile need `nvvm.fence.proxy` before it, as `mma` says.

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
    UnitAttr:$transposed
  );
  let assemblyFormat = [{
    $value `,` $tile `[` $tile_row `,` $tile_column `]` (`transposed` $transposed^)?
    attr-dict `:` qualified(type($value)) `,` qualified(type($tile))
  }];
  let extraClassDeclaration = [{
    /// The part of the tile that the op writes.
    ::mlir::kvcache::MatrixPart getPart();
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Rows in memory
//===----------------------------------------------------------------------===//

def KVCache_StoreRowsOp : KVCache_Op<"store_rows", [
    RecursiveMemoryEffects, SingleBlock]> {
  let summary = "Stores the rows of a fragment into a memref";
  let description = [{
    Stores the elements of each row of a fragment, rounded to the memref's type,
    side by side in the memref's last dimension. The region computes the other
    indices of a row from its number: the row of the fragment plus `row`. It also
    yields whether the row is stored. Column 0 is stored at index `column`. A
    fragment of one dimension has one element for each row, and the region
    yields all indices.

    Each thread stores its elements of a row that lie side by side at once, two
    of an accumulator, and four of `mma_acc_pairs`. `alignment` is the number of bytes of which their
    addresses are multiples, by default an element's size.

    Constraints:
    - (C1) the fragment is not `partial`. There is a `column` if it has columns,
      and only then.
    - (C2) the argument of the region is an index. It yields an index for each
      dimension of the memref, but for the last if the fragment has columns, and
      an `i1`.
    - (C3) the ops of the region at most read memory, are no calls, and have no
      fragments. `kvcache.check` is allowed.
    - (C4) elements of the fragment are those of the memref, of whole bytes, or
      f32 that are rounded to f16, bf16, f8E4M3FN, f8E5M2 or f8E8M0FNU.
    - (C5) with columns, elements that follow one another in the last dimension
      are side by side.
    - (C6) `alignment` is a power of two of at most the bytes stored at once.
    - (C7) stored elements are inside the memref. The bounds checks check it.

    Example:

    ```mlir
    !s = !kvcache.fragment<64x128xf32, wgmma_acc>
    !row = !kvcache.fragment<64xf32, wgmma_acc>

    func.func @store(%sums: !s, %lse: !row, %first: index, %count: index,
                     %out: memref<?x128xbf16>, %logs: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      kvcache.store_rows %sums at(%first, %c0) to %out {alignment = 4 : i64}
          : !s, memref<?x128xbf16> {
      ^bb0(%row: index):
        %exists = arith.cmpi ult, %row, %count : index
        kvcache.yield %row, %exists : index, i1
      }
      kvcache.store_rows %lse at(%first) to %logs : !row, memref<?xf32> {
      ^bb0(%row: index):
        %exists = arith.cmpi ult, %row, %count : index
        kvcache.yield %row, %exists : index, i1
      }
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_FragmentType, "the fragment">:$value,
    Arg<Index, "the number of row 0">:$row,
    Arg<Optional<Index>, "the index of column 0">:$column,
    Arg<AnyMemRef, "the memory", [MemWrite]>:$memref,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$alignment
  );
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $value `at` `(` $row (`,` $column^)? `)` `to` $memref attr-dict `:`
    qualified(type($value)) `,` type($memref) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KVCache_StoreSplitOp : KVCache_Op<"store_split", [
    RecursiveMemoryEffects, SingleBlock, AllTypesMatch<["max", "sum"]>]> {
  let summary = "Stores a split of the rows of an online softmax";
  let description = [{
    Stores the state of each row after some of its keys, from which `attention`
    merges the splits of a row: the accumulator, which is not divided by the sum
    of weights, and the two numbers `max` and `sum`. The elements of a row of
    `acc` are side by side in the last dimension of `accs`, column 0 at index
    `column`. `states` has the exponent that the weights are relative to, and
    their sum. The lane that stores index 0 of a row stores these, too.

    The region computes the other indices of a row, as in `store_rows`: they are
    the same in both memrefs. So a lane has one branch for a row.

    Constraints:
    - (C1) `acc` has two dimensions and the layout of an accumulator, and `max`
      and `sum` have one dimension. They have the element type of `acc`, its layout or another one whose threads have the
      same rows, and are not `partial`.
    - (C2) `accs` and `states` have the rank of each other, at least 1, and the
      element type of `acc`, of whole bytes. Elements that follow one another in
      the last dimension are side by side. `states` has two of them.
    - (C3) the argument of the region is an index. It yields an index for each
      dimension of `accs` except the last, and an `i1`.
    - (C4) the ops of the region are those that `store_rows` allows.
    - (C5) `alignment`, the number of bytes of which addresses of elements stored
      at once are multiples, is a power of two of at most their bytes.
    - (C6) stored elements are inside the memrefs. The bounds checks check it.

    Example:

    ```mlir
    !acc = !kvcache.fragment<16x128xf32, mma_acc>
    !row = !kvcache.fragment<16xf32, mma_acc>

    func.func @store(%acc: !acc, %max: !row, %sum: !row, %split: index,
                     %count: index, %accs: memref<?x32x128xf32>,
                     %states: memref<?x32x2xf32>) {
      %c0 = arith.constant 0 : index
      kvcache.store_split %acc, %max, %sum at(%c0, %c0) to %accs, %states
          {alignment = 8 : i64}
          : !acc, !row, memref<?x32x128xf32>, memref<?x32x2xf32> {
      ^bb0(%row: index):
        %exists = arith.cmpi ult, %row, %count : index
        kvcache.yield %split, %row, %exists : index, index, i1
      }
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_FragmentType, "the accumulator">:$acc,
    Arg<KVCache_FragmentType, "the exponent of each row">:$max,
    Arg<KVCache_FragmentType, "the sum of weights of each row">:$sum,
    Arg<Index, "the number of row 0">:$row,
    Arg<Index, "the index of column 0">:$column,
    Arg<AnyMemRef, "the memory of accumulators", [MemWrite]>:$accs,
    Arg<AnyMemRef, "the memory of exponents and sums", [MemWrite]>:$states,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$alignment
  );
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $acc `,` $max `,` $sum `at` `(` $row `,` $column `)` `to` $accs `,` $states
    attr-dict `:` qualified(type($acc)) `,` qualified(type($max)) `,`
    type($accs) `,` type($states)
    $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def KVCache_ProductOperand : AnyTypeOf<[KVCache_TileType,
                                        KVCache_FragmentType]>;
def KVCache_Accumulator : AnyTypeOf<[KVCache_FragmentType,
                                     KVCache_InFlightType]>;

def KVCache_FragmentMmaOp : KVCache_Op<"fragment_mma", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Starts a product of a team";
  let description = [{
    Starts the product `D = A B`, or with `add` the sum `D = A B + C`. A is a
    fragment or, of a warpgroup, a part of a tile; B is a part of a tile. The
    layout of D says which instruction multiplies: `wgmma` for `wgmma_acc` and
    `wgmma_acc_t`, on sm_90a, and `mma.sync` for the others, on all chips. `mma`
    says what `major_a` and `major_b` mean.

    For `wgmma_acc_t`, `wgmma` has B as its left operand and A as its right one:
    an instruction for each 64 columns of D.

    A warp may multiply by stored elements of 8 bits: they become f16 in
    registers, which is exact. `ldmatrix` gives a lane four bytes that lie side
    by side, or two of each of two rows. So A or D has these columns: of keys,
    A is `mma_a16_pairs`, and of values, D is `mma_acc_pairs`.

    The product is in flight until `fragment_wait`. Until then no thread writes
    the tiles.

    Constraints:
    - (C1) `a_row` and `a_column` are there if `a` is a tile, and only then. A
      tile has `k` columns of A, by default all.
    - (C2) A fragment has two dimensions and the layout of operands of the
      instruction: `mma_a16`, or `wgmma_a16` and `wgmma_a8`. If elements of B
      have 8 bits and `major_b` is `k_major`, it is `mma_a16_pairs`.
    - (C3) `accumulator` has the shape, element type and layout of the result.
    - (C4) of `wgmma`, everything is as `mma` has it. For `wgmma_acc_t`, A is a
      tile, and n is the number of rows.
    - (C5) of `mma.sync`, A is a fragment of bf16 or f16, which B has too; the
      sums are f32, and n and k multiples of 16. `b_row` is a multiple of 8, and
      `b_column` of 16 bytes.
    - (C6) the parts are inside the tiles.
    - (C7) if A is a fragment of f16, `mma.sync` takes a B of f8E4M3FN, f8E5M2 or
      i8, too. If `major_b` is `mn_major` then, D is `mma_acc_pairs`, and
      otherwise `mma_acc`.

    Example:

    ```mlir
    !qt = !kvcache.tile<64x128xbf16, swizzle_128b>
    !kt = !kvcache.tile<128x128xbf16, swizzle_128b>
    !s = !kvcache.fragment<64x128xf32, wgmma_acc>
    !p = !kvcache.fragment<64x128xbf16, wgmma_a16>
    !fly = !kvcache.in_flight<64x128xf32, wgmma_acc>

    func.func @attend(%q: !qt, %k: !kt, %v: !kt, %sums: !s) -> !s {
      %c0 = arith.constant 0 : index
      %qk = kvcache.fragment_mma %q[%c0, %c0], %k[%c0, %c0] : !qt, !kt -> !fly
      %scores = kvcache.fragment_wait %qk : !fly
      %probs = kvcache.to_operand %scores : !s -> !p
      %pv = kvcache.fragment_mma %probs, %v[%c0, %c0] add %sums
          {major_b = #kvcache.major<mn_major>} : !p, !kt, !s -> !fly
      %out = kvcache.fragment_wait %pv : !fly
      return %out : !s
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_ProductOperand, "A: a tile, or a fragment", [MemRead]>:$a,
    Arg<Optional<Index>, "the first row of the tile of A">:$a_row,
    Arg<Optional<Index>, "the first column of the tile of A">:$a_column,
    Arg<KVCache_TileType, "the tile of B", [MemRead]>:$b,
    Arg<Index, "the first row of the tile of B">:$b_row,
    Arg<Index, "the first column of the tile of B">:$b_column,
    Arg<Optional<KVCache_Accumulator>, "C">:$accumulator,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$k,
    DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major_a,
    DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major_b
  );
  let results = (outs Res<KVCache_InFlightType, "D">:$result);
  let assemblyFormat = [{
    $a (`[` $a_row^ `,` $a_column `]`)? `,` $b `[` $b_row `,` $b_column `]`
    (`add` $accumulator^)? attr-dict `:` qualified(type($a)) `,`
    qualified(type($b)) (`,` qualified(type($accumulator))^)? `->`
    qualified(type($result))
  }];
  let extraClassDeclaration = [{
    /// The bytes of which columns are multiples for `ldmatrix`.
    static constexpr int64_t kColumnBytes = 16;

    /// n: the number of columns of the result.
    int64_t getSizeN() { return getType().getColumns(); }
    /// k: the number of columns of A.
    int64_t getSizeK();
    /// Whether warpgroups multiply, by wgmma. Otherwise it is mma.sync.
    bool isWgmma() {
      return ::mlir::kvcache::isWgmmaAcc(getType().getLayout());
    }
    /// Whether B is the left operand of `wgmma`.
    bool isTransposed() {
      return getType().getLayout() ==
             ::mlir::kvcache::FragmentLayout::WgmmaAccT;
    }
    /// Whether `mma.sync` multiplies by elements of 8 bits, as f16.
    bool dequantizes();
    /// The tile of A; null if A is a fragment.
    ::mlir::TypedValue<::mlir::kvcache::TileType> getTileA();
    /// The parts of tiles that the op reads: B, and A if it is a tile.
    ::llvm::SmallVector<::mlir::kvcache::MatrixPart, 2> getParts();
  }];
  let hasVerifier = 1;
}

def KVCache_FragmentWaitOp : KVCache_Op<"fragment_wait", [
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Waits for products of a team";
  let description = [{
    Waits until at most `pending` of the products that the team has started last
    are in flight, and gives those that are complete. A product of `mma.sync` is
    complete at once, so it takes no instruction. A product of `wgmma_acc_t`
    counts once for each 64 columns.

    Constraints:
    - (C1) the operands are products that the op waits for, of one instruction.
      The emulator checks that it waits for them.
    - (C2) `pending` is at most 7, and 0 for `mma.sync`.

    Example:

    ```mlir
    !kt = !kvcache.tile<128x128xbf16, swizzle_128b>
    !fly = !kvcache.in_flight<64x128xf32, wgmma_acc>
    !s = !kvcache.fragment<64x128xf32, wgmma_acc>

    func.func @two(%q: !kt, %k: !kt) -> (!s, !s) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %first = kvcache.fragment_mma %q[%c0, %c0], %k[%c0, %c0] {k = 64}
          : !kt, !kt -> !fly
      %second = kvcache.fragment_mma %q[%c0, %c64], %k[%c0, %c64] {k = 64}
          : !kt, !kt -> !fly
      %x = kvcache.fragment_wait %first pending 1 : !fly
      %y = kvcache.fragment_wait %second : !fly
      return %x, %y : !s, !s
    }
    ```
  }];
  let arguments = (ins
    Arg<Variadic<KVCache_InFlightType>, "the products in flight">:$products,
    DefaultValuedAttr<ConfinedAttr<I64Attr, [
        IntNonNegative, IntMaxValue<7>]>, "0">:$pending
  );
  let results = (outs
    Res<Variadic<KVCache_FragmentType>, "the same, complete">:$results);
  let assemblyFormat = [{
    $products (`pending` $pending^)? attr-dict `:` qualified(type($products))
  }];
  let hasVerifier = 1;
}

def KVCache_ScheduleFenceOp : KVCache_Op<"schedule_fence", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Keeps what precedes it before the next wait";
  let description = [{
    Keeps the computation of its operand before the next `fragment_wait`, so that
    it overlaps a product in flight. Without it, ptxas moves waits up: to before
    the exponentials of a softmax, for example. The operand is a sum of numbers
    that are not negative.

    The lowering is a branch that is never taken: if a number of the operand is
    negative in a thread of the warp, the warp waits for all products and traps.
    ptxas moves no wait across it.

    Constraints:
    - (C1) the operand has one dimension and elements of f32.
    - (C2) no element is negative. The kernel traps if one is.

    Example:

    ```mlir
    !kt = !kvcache.tile<128x128xbf16, swizzle_128b>
    !s = !kvcache.fragment<64x128xf32, wgmma_acc>
    !fly = !kvcache.in_flight<64x128xf32, wgmma_acc>
    !share = !kvcache.fragment<64xf32, wgmma_acc, partial>

    func.func @overlap(%q: !kt, %k: !kt, %probs: !s, %sum: !share)
        -> (!s, !share) {
      %c0 = arith.constant 0 : index
      %started = kvcache.fragment_mma %q[%c0, %c0], %k[%c0, %c0]
          : !kt, !kt -> !fly
      %next = kvcache.reduce addf %probs from %sum : !s -> !share
      kvcache.schedule_fence %next : !share
      %scores = kvcache.fragment_wait %started : !fly
      return %scores, %next : !s, !share
    }
    ```
  }];
  let arguments = (ins Arg<KVCache_FragmentType, "the sums">:$sums);
  let assemblyFormat = "$sums attr-dict `:` qualified(type($sums))";
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_FRAGMENTOPS_TD
