//===- FragmentProductOps.td - Products of fragments and tiles -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FRAGMENTPRODUCTOPS_TD
#define KVCACHE_IR_FRAGMENTPRODUCTOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// All threads of the team of a fragment execute an op on it together.

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
    an instruction for each 64 columns of D, all in one wgmma-group.

    `mma.sync` has words of B that `ldmatrix` loads: four matrices of 8 rows and
    16 bytes, those of the next columns first if `major_b` is `k_major`. With
    `rows_first`, those of the next rows are first, as for `mn_major`: two
    products of one tile then share addresses.

    A warp may multiply by stored elements of 8 bits: they become f16 in
    registers, which is exact. `ldmatrix` gives a lane four bytes that lie side
    by side, or two of each of two rows. So A or D has these columns: of keys,
    A is `mma_a16_pairs`, and of values, D is `mma_acc_pairs`.

    With `packed`, B has elements of 4 bits, two in each i8 of its tile, the first
    one in the low bits. The bits of an element become bits of an f16, which is a
    power of two times the element: 2^-14 for f4E2M1FN, 2^-24 for i4. Elements of
    i4 are 0 to 15. `ldmatrix` gives a lane eight elements of a row, or four of
    each of two rows. So of keys, A is `mma_a16_quads`, and of values, D is
    `mma_acc_quads`.

    With `scales`, elements of f4E2M1FN are multiplied by the scales of their
    groups: 16 elements of a row of the tile. The product is rounded to f16, which
    has all products with numbers of f8E4M3FN times 2^7. Row `scales_row + i` of
    `scales` has the scales of row `b_row + i` of the tile: with P pairs of groups
    in a row, group `2 p + j` is in column `j P + p`.

    With `paired`, B has the columns of each 16 in the order that
    `fragment_load` says, so that A is `mma_a16_pairs`.

    The product is in flight until `fragment_wait`. Until then no thread writes
    the tiles. `kvcache-lower-fragments` checks (C10) to (C12).

    Constraints:
    - (C1) `a_row` and `a_column` are there if `a` is a tile, and only then. A
      tile has `k` columns of A, by default all.
    - (C2) A fragment has two dimensions and the layout of operands of the
      instruction: `mma_a16`, or `wgmma_a16` and `wgmma_a8`. If elements of B
      have 8 bits and `major_b` is `k_major`, or with `paired`, it is
      `mma_a16_pairs`.
    - (C3) `accumulator` has the shape, element type and layout of the result.
    - (C4) of `wgmma`, everything is as `mma` has it. For `wgmma_acc_t`, A is a
      tile, and n is the number of rows.
    - (C5) of `mma.sync`, A is a fragment of bf16 or f16, which B has too, D is
      of f32, and n and k multiples of 16. `b_row` is a multiple of 8, and
      `b_column` of 16 bytes.
    - (C6) the parts are inside the tiles.
    - (C7) `thread` is for `mma.sync`, whose lanes address rows of B.
    - (C8) if A is a fragment of f16, `mma.sync` takes a B of f8E4M3FN, f8E5M2 or
      i8, too. If `major_b` is `mn_major` then, D is `mma_acc_pairs`, and
      otherwise `mma_acc`.
    - (C9) `rows_first` and `paired` are for a `k_major` B of `mma.sync` with
      elements of 16 bits.
    - (C10) a product in flight has one use on each path: `fragment_wait`, the
      `add` of another product, or an op that passes it on.
    - (C11) of `wgmma`, only other products use a fragment of A before
      `fragment_wait`.
    - (C12) the region of `consume` waits for products that read its tiles.
    - (C13) `packed` is f4E2M1FN or i4. It is for `mma.sync`, an A of f16 and a B
      of i8. A is `mma_a16_quads` and D is `mma_acc`, or with `mn_major` A is
      `mma_a16` and D is `mma_acc_quads`.
    - (C14) `scales` and `scales_row` are there together, and only with `packed` of
      f4E2M1FN. `scales` has elements of f16, no swizzle, the rows of the part of B
      from `scales_row` on, and a column for each 8 columns of the tile of B.
    - (C15) with `scales`, a row of the part of B has 32, 64, 128 or 256 elements,
      which divide those of the tile, and `b_column` is a multiple of their
      bytes.

    Example:

    ```mlir
    !qt = !kvcache.tile<64x128xbf16, swizzle_128b>
    !kt = !kvcache.tile<128x128xbf16, swizzle_128b>
    !s = !kvcache.fragment<64x128xf32, wgmma_acc>
    !p = !kvcache.fragment<64x128xbf16, wgmma_a16>
    !fly = !kvcache.in_flight<64x128xf32, wgmma_acc>
    !codes = !kvcache.tile<64x64xi8, swizzle_64b>
    !q4 = !kvcache.fragment<16x128xf16, mma_a16_quads>
    !s4 = !kvcache.fragment<16x64xf32, mma_acc>

    func.func @attend(%q: !qt, %k: !kt, %v: !kt, %acc: !s) -> !s {
      %c0 = arith.constant 0 : index
      %qk = kvcache.fragment_mma %q[%c0, %c0], %k[%c0, %c0] : !qt, !kt -> !fly
      %scores = kvcache.fragment_wait %qk : !fly
      %probs = kvcache.to_operand %scores : !s -> !p
      %pv = kvcache.fragment_mma %probs, %v[%c0, %c0] add %acc
          {major_b = #kvcache.major<mn_major>} : !p, !kt, !s -> !fly
      %out = kvcache.fragment_wait %pv : !fly
      return %out : !s
    }

    // Keys of NVFP4: 64 tokens of 128 elements.
    func.func @score(%q: !q4, %k: !codes, %scales: !kvcache.tile<64x8xf16>)
        -> !s4 {
      %c0 = arith.constant 0 : index
      %qk = kvcache.fragment_mma %q, %k[%c0, %c0] scales %scales[%c0]
          {packed = f4E2M1FN} : !q4, !codes scales !kvcache.tile<64x8xf16>
          -> !kvcache.in_flight<16x64xf32, mma_acc>
      %scores = kvcache.fragment_wait %qk
          : !kvcache.in_flight<16x64xf32, mma_acc>
      return %scores : !s4
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
    KVCache_FragmentThread:$thread,
    Arg<Optional<KVCache_TileType>, "the scales of groups of B", [MemRead]>
        :$scales,
    Arg<Optional<Index>, "the row of the scales of row `b_row`">:$scales_row,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$k,
    DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major_a,
    DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major_b,
    UnitAttr:$rows_first,
    UnitAttr:$paired,
    OptionalAttr<TypeAttr>:$packed
  );
  let results = (outs Res<KVCache_InFlightType, "D">:$result);
  let assemblyFormat = [{
    $a (`[` $a_row^ `,` $a_column `]`)? `,` $b `[` $b_row `,` $b_column `]`
    (`add` $accumulator^)? (`thread` $thread^)?
    (`scales` $scales^ `[` $scales_row `]`)? attr-dict `:`
    qualified(type($a)) `,` qualified(type($b))
    (`,` qualified(type($accumulator))^)? (`scales` qualified(type($scales))^)?
    `->` qualified(type($result))
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
    /// Elements of `packed` tiles: in an element of the tile, in a group with a
    /// scale, and in the least part of a row with scales.
    static constexpr int64_t kPacked = 2, kGroup = 16, kPackedColumns = 32;
    /// The elements of a row of the part of B.
    int64_t countRowElements() {
      return getMajorB() == ::mlir::kvcache::Major::K ? getSizeK() : getSizeN();
    }
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
    complete at once, so it takes no instruction.

    Constraints:
    - (C1) the operands are products that the op waits for, all of `wgmma` or
      all of `mma.sync`. The emulator checks that it waits for them.
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

#endif // KVCACHE_IR_FRAGMENTPRODUCTOPS_TD
