//===- MatrixOps.td - Products of tiles -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_MATRIXOPS_TD
#define KVCACHE_IR_MATRIXOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// wgmma, which only Hopper has: PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions". No lowering makes them into instructions of other chips.

/// A fragment is a vector: what one thread of a warpgroup has of a matrix.
def KVCache_MatrixOperand : AnyTypeOf<[KVCache_TileType,
                                       KVCache_FixedVector1D]>;

def KVCache_MmaOp : KVCache_Op<"mma", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>,
    OptionalTypesMatchWith<"'accumulators' has the type of 'result'", "result",
                           "accumulators", "$_self">]> {
  let summary = "Starts a matrix product of a warpgroup";
  let description = [{
    Starts the product `D = A B`, or with `add` the sum `D = A B + C`, where A
    is 64 by k, B is k by n, and C and D are 64 by n. The 128 threads of a
    warpgroup (four warps, from a multiple of four on) execute the op together.
    It is for sm_90a, the only chip with wgmma.

    D and C are *fragments*: each thread has n / 2 elements of the matrix, in a
    vector. Element i of thread t of the warpgroup is in

    - row `16 (t / 32) + t % 32 / 4 + 8 (i / 2 % 2)`,
    - column `8 (i / 4) + 2 (t % 4) + i % 2`.

    So four neighbouring threads share two rows. A is a part of a tile, or a
    fragment of k / 2 elements. With elements of 16 bits, element i of the
    fragment is in the row above, and in column `8 (i / 4) + 2 (t % 4) + i % 2`:
    D, converted to 16 bits, is the A of a next product. With elements of 8
    bits, it is in row `16 (t / 32) + t % 32 / 4 + 8 (i / 4 % 2)` and column
    `16 (i / 8) + 4 (t % 4) + i % 4`.

    The part of a tile begins at the element `[row, column]`. `major_a` and
    `major_b` say which index of the matrix runs along the rows of the tile:

    | | rows of the tile | columns of the tile |
    | --- | --- | --- |
    | A, `k_major` | the 64 rows of A | k |
    | A, `mn_major` | k | the 64 rows of A |
    | B, `k_major` | the n columns of B | k |
    | B, `mn_major` | k | the n columns of B |

    A tile of keys is the K-major B of a product of queries and keys. A tile of
    values is the MN-major B of a product of probabilities and values.

    Products of floats are exact, and the hardware adds them up in the type of
    the result; of f8 elements it keeps fewer bits of the sums (PTX ISA,
    "wgmma.mma_async"). i8 elements are signed, and sums wrap around.

    The product is asynchronous. One execution of the op is one wgmma-group,
    which `mma_wait` waits for. With `grouped`, it is in the group of the next
    `mma`. Until the wait

    - the registers of D are in flight. Only another `mma` of the same n and
      types may take the result, as its `accumulators`, once, in the same way
      through loops and branches. The result of `mma_wait` is for all others.
    - the fragment of A must not be used by other ops.
    - threads and copies must not write the tiles. In `consume`, the region must
      wait before its end, which frees the slot.

    wgmma reads tiles by the async proxy. Tensor copies write by this proxy; where
    threads copy, the lowering of `wait` and `consume` adds the fence. A thread
    that has written a tile by `tile_store` needs `nvvm.fence.proxy` after the
    write, and then a barrier with the warpgroup.

    Constraints:
    - (C1) `a_row` and `a_column` are there if `a` is a tile, and only then.
    - (C2) the element types of `a`, `b` and `result` are: bf16, bf16 and f32;
      f16, f16 and f32 or f16; f8E4M3FN or f8E5M2 for each of `a` and `b`, and
      f32 or f16; i8, i8 and i32.
    - (C3) `result` has n / 2 lanes, where n is a multiple of 8 from 8 to 256,
      and for i8 above 32 a multiple of 16.
    - (C4) `mn_major` needs elements of 16 bits, and a fragment of A is
      `k_major`.
    - (C5) tiles have a swizzle, and fewer than 2^18 bytes in a chunk.
    - (C6) k is a multiple of 32 bytes. If `a` is a tile, `k` has it, and is by
      default all of the tile; otherwise it is twice the number of lanes of `a`,
      and `k` is absent.
    - (C7) the part of a tile is not larger than the tile.
    - (C8) `a_row` and `b_row` are multiples of 8. Columns are, of a K-major
      tile, multiples of 32 bytes, and of an MN-major tile multiples of the span
      of its swizzle. The part is inside the tile. The lowering checks
      constants, the bounds checks other values.
    - (C9) another `mma` follows a `grouped` one in its block, with no wait and
      no op with regions in between.

    Example:

    ```mlir
    !qt = !kvcache.tile<64x128xbf16, swizzle_128b>
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @attend(%q: !qt, %k: !kt, %v: !kt) -> vector<64xf32> {
      %c0 = arith.constant 0 : index
      %started = kvcache.mma %q[%c0, %c0], %k[%c0, %c0]
          : !qt, !kt -> vector<32xf32>
      %scores = kvcache.mma_wait %started : vector<32xf32>
      %probs = arith.truncf %scores : vector<32xf32> to vector<32xbf16>
      %acc = kvcache.mma %probs, %v[%c0, %c0]
          {major_b = #kvcache.major<mn_major>}
          : vector<32xbf16>, !kt -> vector<64xf32>
      %out = kvcache.mma_wait %acc : vector<64xf32>
      return %out : vector<64xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_MatrixOperand, "A: a tile, or a fragment", [MemRead]>:$a,
    Arg<Optional<Index>, "the first row of the tile of A">:$a_row,
    Arg<Optional<Index>, "the first column of the tile of A">:$a_column,
    Arg<KVCache_TileType, "the tile of B", [MemRead]>:$b,
    Arg<Index, "the first row of the tile of B">:$b_row,
    Arg<Index, "the first column of the tile of B">:$b_column,
    Arg<Optional<KVCache_FixedVector1D>, "the fragment of C">:$accumulators,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$k,
    DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major_a,
    DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major_b,
    UnitAttr:$grouped
  );
  let results = (outs Res<KVCache_FixedVector1D, "the fragment of D">:$result);
  let assemblyFormat = [{
    $a (`[` $a_row^ `,` $a_column `]`)? `,` $b `[` $b_row `,` $b_column `]`
    (`add` $accumulators^)? attr-dict `:` qualified(type($a)) `,`
    qualified(type($b)) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// n: the number of columns of the result.
    int64_t getSizeN() { return 2 * getType().getNumElements(); }
    /// k: the number of columns of A.
    int64_t getSizeK();
    /// Returns k for a tile of A, of which `k` is a part.
    static int64_t getSizeK(::mlir::kvcache::TileType a,
                            ::mlir::kvcache::Major major,
                            ::std::optional<uint64_t> k);
    ::mlir::VectorType getType() {
      return ::llvm::cast<::mlir::VectorType>(getResult().getType());
    }
    /// The tile of A; null if A is a fragment.
    ::mlir::TypedValue<::mlir::kvcache::TileType> getTileA() {
      return ::llvm::dyn_cast<::mlir::TypedValue<::mlir::kvcache::TileType>>(
          getA());
    }
    /// The parts of tiles that the op reads: B, and A if it is a tile.
    ::llvm::SmallVector<::mlir::kvcache::MatrixPart, 2> getParts();
    /// Rows of A.
    static constexpr int64_t kM = 64;
  }];
  let hasVerifier = 1;
}

def KVCache_MmaWaitOp : KVCache_Op<"mma_wait", [
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Waits for matrix products of a warpgroup";
  let description = [{
    Waits until at most `pending` of the wgmma-groups that the thread has
    started last are in flight. Each `mma` starts a group, and so does
    `nvvm.wgmma.commit.group.sync.aligned`. All threads of the warpgroup execute
    the op.

    The op gives the values that are complete, so that no pass moves a use of
    them before the wait: the upstream op of this instruction
    (`nvvm.wgmma.wait.group.sync.aligned`) takes no values. Without operands,
    the op only waits, for example before a tile is written again.

    Constraints:
    - (C1) the operands are results of `mma` whose groups the op waits for. The
      emulator checks it.
    - (C2) `pending` is at most 7.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>

    func.func @two(%q: !kt, %k: !kt) -> (vector<32xf32>, vector<32xf32>) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %first = kvcache.mma %q[%c0, %c0], %k[%c0, %c0] {k = 64}
          : !kt, !kt -> vector<32xf32>
      %second = kvcache.mma %q[%c0, %c64], %k[%c0, %c64] {k = 64}
          : !kt, !kt -> vector<32xf32>
      %x = kvcache.mma_wait %first pending 1 : vector<32xf32>
      %y = kvcache.mma_wait %second : vector<32xf32>
      return %x, %y : vector<32xf32>, vector<32xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<Variadic<KVCache_FixedVector1D>, "the fragments in flight">:$products,
    DefaultValuedAttr<ConfinedAttr<I64Attr, [
        IntNonNegative, IntMaxValue<7>]>, "0">:$pending
  );
  let results = (outs
    Res<Variadic<KVCache_FixedVector1D>, "the same, complete">:$results);
  let assemblyFormat = [{
    ($products^)? (`pending` $pending^)? attr-dict (`:` type($products)^)?
  }];
}

#endif // KVCACHE_IR_MATRIXOPS_TD
