//===- FragmentRowOps.td - Rows of fragments in memory -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FRAGMENTROWOPS_TD
#define KVCACHE_IR_FRAGMENTROWOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// All threads of the team of a fragment execute an op on it together.

def KVCache_StoreRowsOp : KVCache_Op<"store_rows", [
    AttrSizedOperandSegments, RecursiveMemoryEffects, SingleBlock]> {
  let summary = "Stores the rows of a fragment into a memref";
  let description = [{
    Stores the elements of each row of a fragment, rounded to the memref's type,
    side by side in the memref's last dimension. The region computes the other
    indices of a row from its number: the row of the fragment plus `row`. It also
    yields whether the row is stored. Column 0 is stored at index `column`. A
    fragment of one dimension has one element for each row, and the region
    yields all indices.

    Each thread stores its elements of a row that lie side by side at once, two
    of an accumulator, and four of `mma_acc_pairs`. `alignment` is the number of
    bytes of which their addresses are multiples, by default an element's size.

    Constraints:
    - (C1) the fragment is not `partial`. There is a `column` if it has columns,
      and only then.
    - (C2) the argument of the region is an index. It yields an index for each
      dimension of the memref, except the last if the fragment has columns, and
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

    func.func @store(%acc: !s, %lse: !row, %first: index, %count: index,
                     %out: memref<?x128xbf16>, %logs: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      kvcache.store_rows %acc at(%first, %c0) to %out {alignment = 4 : i64}
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
    KVCache_FragmentThread:$thread,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$alignment
  );
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $value `at` `(` $row (`,` $column^)? `)` `to` $memref (`thread` $thread^)?
    attr-dict `:` qualified(type($value)) `,` type($memref) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def KVCache_StoreSplitOp : KVCache_Op<"store_split", [
    RecursiveMemoryEffects, SingleBlock, AllTypesMatch<["max", "sum"]>]> {
  let summary = "Stores a split of the rows of an online softmax";
  let description = [{
    Stores the state of each row after some of its keys, which `merge_splits`
    merges: the accumulator, which is not normalized, and the two numbers `max`
    and `sum`. The elements of a row of `acc` are side by side in the last
    dimension of `accs`, column 0 at index `column`. `states` has the exponent
    that the probabilities are relative to, and their sum. The lane that stores
    index 0 of a row stores these, too.

    The region computes the other indices of a row, as in `store_rows`: they are
    the same in both memrefs. So a lane has one branch for a row.

    Constraints:
    - (C1) `acc` has two dimensions and the layout of an accumulator, and `max`
      and `sum` have one dimension. They have the element type of `acc`, its
      layout or another one whose threads have the same rows, and are not
      `partial`.
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
    Arg<KVCache_FragmentType, "the sum of probabilities of each row">:$sum,
    Arg<Index, "the number of row 0">:$row,
    Arg<Index, "the index of column 0">:$column,
    Arg<AnyMemRef, "the memory of accumulators", [MemWrite]>:$accs,
    Arg<AnyMemRef, "the memory of exponents and sums", [MemWrite]>:$states,
    KVCache_FragmentThread:$thread,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$alignment
  );
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $acc `,` $max `,` $sum `at` `(` $row `,` $column `)` `to` $accs `,` $states
    (`thread` $thread^)? attr-dict `:` qualified(type($acc)) `,` qualified(type($max)) `,`
    type($accs) `,` type($states)
    $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif // KVCACHE_IR_FRAGMENTROWOPS_TD
