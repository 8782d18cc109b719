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
    Returns the number of the thread in its block, x fastest. Compilers cannot
    see that each execution gives the same number. Ops with the operand `thread`
    compute the places of the thread's elements from it, where they need these.
    So no register keeps the places across a loop over tiles, for example.

    All threads of a warp execute it together: the lowering is a shuffle.

    Example:

    ```mlir
    !s = !kvcache.fragment<16x64xf32, wgmma_acc_t>

    func.func @scale(%scores: !s, %factors: memref<?xf32>, %tiles: index) -> !s {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %all = scf.for %j = %c0 to %tiles step %c1 iter_args(%s = %scores) -> (!s) {
        %thread = kvcache.opaque_thread : index
        %scaled = kvcache.map %s at(%c0, %c0) thread %thread : !s -> !s {
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
      %acc = kvcache.splat %zero : !kvcache.fragment<64x128xf32, wgmma_acc>
      return %acc : !kvcache.fragment<64x128xf32, wgmma_acc>
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
    in all columns. With `at`, the region also takes the row and the column of
    the element: its numbers in the matrix plus the two operands. For a result of
    one dimension, it takes the row only.

    The lowering emits what depends on neither row nor column once for a thread,
    what depends on the row alone once for each row of the thread, and likewise
    for columns.

    With `lane_columns`, two numbers replace the column: the column of the
    thread's first element, and the distance of the element from it, a constant.
    To compare distances with `bound - first` takes one register; to compare
    columns with `bound` would take one for each.

    A region of one op, whose operands are the arguments in order, may be
    written by its name before the operands in parentheses.

    Syntax:

    ```
    operation ::= `kvcache.map` $fragments (`at` `(` $row (`,` $column)? `)`)?
                  (`thread` $thread)? attr-dict `:` type($fragments) `->`
                  type($result) $body
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
      `lane_columns` needs a column, and `thread` needs a row.
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

    func.func @probs(%scores: !s, %max: !row, %alpha: !row, %acc: !s,
                     %first: index, %key: index, %low: f32) -> (!s, !s) {
      %c0 = arith.constant 0 : index
      %probs = kvcache.map %scores, %max at(%first, %key) : !s, !row -> !s {
      ^bb0(%score: f32, %most: f32, %query: index, %token: index):
        %sees = arith.cmpi ule, %token, %query : index
        %seen = arith.select %sees, %score, %low : f32
        %less = arith.subf %seen, %most : f32
        %prob = math.exp2 %less : f32
        kvcache.yield %prob : f32
      }
      %scaled = kvcache.map arith.mulf(%acc, %alpha) : !s, !row -> !s
      return %probs, %scaled : !s, !s
    }
    ```
  }];
  let arguments = (ins
    Arg<Variadic<KVCache_FragmentType>, "the fragments">:$fragments,
    Arg<Optional<Index>, "the number of row 0">:$row,
    Arg<Optional<Index>, "the number of column 0">:$column,
    KVCache_FragmentThread:$thread,
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
    other, and other kinds two at a time. On sm_100 and sm_103, where `add.f32x2`
    is one instruction, it adds f32 of `tmem_acc` and `tmem_row` with even
    numbers, those with odd ones, and then both. Then lanes exchange, the nearest first.
    So the order does not depend on other rows. As in `gpu.shuffle`, all lanes of
    a warp run the op.

    Warps that share rows exchange through `scratch`: each stores its numbers,
    all threads of the block wait at a barrier, and each combines the numbers of
    the warps in their order. The team is then all of the block.

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
      warp, a column for each row of the fragment, and its elements. `thread`
      needs a `scratch`.
    - (C6) between the op and the next store into `scratch`, also of a `reduce`,
      is a barrier of the block: a `reduce` through another tile has one. The
      lowering checks the ops that follow, also in the next iteration of a loop
      and after it. Calls may have a barrier. The emulator finds other races.

    Example:

    ```mlir
    !s = !kvcache.fragment<64x128xf32, wgmma_acc>
    !row = !kvcache.fragment<64xf32, wgmma_acc>
    !share = !kvcache.fragment<64xf32, wgmma_acc, partial>

    func.func @rows(%scores: !s, %old: !row, %sum: !share) -> (!row, !row) {
      %max = kvcache.reduce maxnumf %scores from %old : !s -> !row
      %added = kvcache.reduce addf %scores from %sum : !s -> !share
      %row_sum = kvcache.reduce addf %added : !share -> !row
      return %max, %row_sum : !row, !row
    }
    ```
  }];
  let arguments = (ins
    KVCache_Reduction:$kind,
    Arg<KVCache_FragmentType, "the fragment">:$source,
    Arg<Optional<KVCache_FragmentType>, "the first element of each row">:$init,
    Arg<Optional<KVCache_TileType>, "the numbers of each warp">:$scratch,
    KVCache_FragmentThread:$thread
  );
  let results = (outs Res<KVCache_FragmentType, "a number for each row">:$result);
  let assemblyFormat = [{
    $kind $source (`from` $init^)? (`across` $scratch^)? (`thread` $thread^)?
    attr-dict `:`
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
    branch on it does not part the lanes of a warp. As in `gpu.shuffle`, all
    lanes run the op.

    Constraints:
    - (C1) the fragment has one dimension, elements of i1, and is not `partial`.

    Example:

    ```mlir
    !s = !kvcache.fragment<16x64xf32, mma_acc>
    !row = !kvcache.fragment<16xf32, mma_acc>
    !flags = !kvcache.fragment<16xi1, mma_acc>

    func.func @rescale(%grows: !flags, %factors: !row, %acc: !s) -> !s {
      %any = kvcache.warp_any %grows : !flags
      %scaled = scf.if %any -> (!s) {
        %product = kvcache.map arith.mulf(%acc, %factors) : !s, !row -> !s
        scf.yield %product : !s
      } else {
        scf.yield %acc : !s
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

#endif // KVCACHE_IR_FRAGMENTOPS_TD
