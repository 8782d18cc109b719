//===- TensorMemoryOps.td - Products in tensor memory -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_TENSORMEMORYOPS_TD
#define KVCACHE_IR_TENSORMEMORYOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// tcgen05, which Blackwell's chips for data centers have: PTX ISA, "TensorCore
// 5th Generation Family Instructions". `!kvcache.tmem_tile` is a tile of tensor
// memory. Each op has the fences of its own thread, so that kernels only add
// what synchronizes threads: barriers, and mbarriers that `tmem_commit` arrives
// at.

def KVCache_TmemAllocOp : KVCache_Op<"tmem_alloc"> {
  let summary = "Allocates tiles in tensor memory";
  let description = [{
    Allocates the columns of tiles in tensor memory, all at once, and gives them
    back at the end of the block of operations that the op is in. The memory is
    uninitialized. All threads of the thread block execute the op, and reach
    the end of that block. Thread blocks of a multiprocessor share its 512
    columns: the op takes a power of two from 32 on, and waits until so many are
    free. So a kernel that several thread blocks should run at once has few.

    With `pair`, both thread blocks of a cluster of two execute the op. They get
    the same columns. They synchronize after the allocation, and before they
    give the columns back.

    It is for sm_100a, sm_103a, sm_110a and their families.

    Constraints:
    - (C1) there is at least one tile.
    - (C2) the tiles have at most 512 columns of tensor memory: of 128 rows, or
      of at most 256 columns, a column for each 32 bits of a row; of 64 rows and
      more columns, half as many.
    - (C3) a kernel has one `tmem_alloc`, and not in a loop. The lowering
      checks it.
    - (C4) with `pair`, the kernel states clusters of two thread blocks, by
      `known_cluster_size` or by `cluster_barrier`. The lowering checks it.

    Example:

    ```mlir
    !scores = !kvcache.tmem_tile<128x64xf32>
    !probs = !kvcache.tmem_tile<128x64xbf16>

    func.func @alloc(%v: vector<32xf32>, %half: index) {
      %c0 = arith.constant 0 : index
      %s, %w = kvcache.tmem_alloc : !scores, !probs
      kvcache.tmem_store %v, %s[%c0] half %half : vector<32xf32>, !scores
      return
    }
    ```
  }];
  let arguments = (ins UnitAttr:$pair);
  let results = (outs
    Res<Variadic<KVCache_TmemTileType>, "the tiles", [MemAlloc]>:$tiles);
  let assemblyFormat = "attr-dict `:` qualified(type($tiles))";
  let hasVerifier = 1;
}

def KVCache_TmemViewOp : KVCache_Op<"tmem_view", [Pure]> {
  let summary = "Gives columns of a tile in tensor memory as another tile";
  let description = [{
    The result is in the columns of tensor memory that the elements of `tile`
    from `column` on have. Its elements may have another type: a product A, such
    as probabilities, can replace the D that it is computed from. Accesses of
    both need the order that accesses of one tile need.

    Constraints:
    - (C1) the tiles have 128 rows.
    - (C2) `column` is a multiple of 32 bits, and all of the result is inside of
      `tile`. The verifier checks constants.

    Example:

    ```mlir
    !both = !kvcache.tmem_tile<128x256xf32>
    !scores = !kvcache.tmem_tile<128x128xf32>
    !probs = !kvcache.tmem_tile<128x128xbf16>

    func.func @second(%both: !both) -> (!scores, !probs) {
      %c128 = arith.constant 128 : index
      %s = kvcache.tmem_view %both[%c128] : !both -> !scores
      %p = kvcache.tmem_view %both[%c128] : !both -> !probs
      return %s, %p : !scores, !probs
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_TmemTileType, "the tile">:$tile,
    Arg<Index, "the first column">:$column
  );
  let results = (outs Res<KVCache_TmemTileType, "the columns">:$view);
  let assemblyFormat = [{
    $tile `[` $column `]` attr-dict `:` qualified(type($tile)) `->`
    qualified(type($view))
  }];
  let hasVerifier = 1;
}

/// A is in shared or in tensor memory.
def KVCache_TmemOperand : AnyTypeOf<[KVCache_TileType, KVCache_TmemTileType]>;

def KVCache_TmemMmaOp : KVCache_Op<"tmem_mma", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Starts a matrix product into tensor memory";
  let description = [{
    Starts the product `D = A B`, or `D = A B + D` if `add` is given and true,
    where A is m by k, B is k by n, and D is m by n: a tile of tensor memory. One
    thread executes the op, and the tensor cores do the rest.

    A is a part of a tile in shared memory, or a tile of tensor memory. B is a
    part of a tile in shared memory. Parts begin at the element `[row, column]`.
    `major_a` and `major_b` say which index of the matrix runs along the rows of
    the tile, as in `mma`:

    | | rows of the tile | columns of the tile |
    | --- | --- | --- |
    | A, `k_major` | the m rows of A | k |
    | A, `mn_major` | k | the m rows of A |
    | B, `k_major` | the n columns of B | k |
    | B, `mn_major` | k | the n columns of B |

    Products of floats are exact, and the hardware adds them up in f32. i8
    elements are signed, and sums wrap around.

    The product is asynchronous, and products of a thread with the same D happen
    in order. When a `tmem_commit` of the thread completes, all its products
    before it are done. Until a thread has waited for that,

    - it must not access the tile D, or the tile A in tensor memory. Only other
      products of the same D and types may add to it.
    - threads and copies must not write the tiles in shared memory. In
      `consume`, the region must wait before its end, which frees the slot.

    What other threads have done to the operands has to be ordered before the
    product: the words that they store by `tmem_store`, and also their loads of
    D. A barrier between them is enough. The product reads shared memory by the
    async proxy. Tensor copies write by this proxy; where threads copy, the
    lowering of `wait` and `consume` adds the fence. A thread that has written a
    tile by `tile_store` needs `nvvm.fence.proxy` after the write, and then a
    barrier with the thread of the product.

    With `pair`, the product is one of both thread blocks of a cluster of two. A
    thread of block 0 executes the op, and tiles are at the same place in both
    blocks. Each block has 64 rows of A, and multiplies them by the columns of B
    of both blocks: row r of its D has the products with columns of block 0, and
    row 64 + r those with columns of block 1. So n is the columns of B that one
    block has. Of A in tensor memory, row 64 + r is the same as row r.

    Constraints:
    - (C1) `a_row` and `a_column` are there if `a` is in shared memory, and only
      then.
    - (C2) the element types of `a`, `b` and `d` are: bf16, bf16 and f32; f16,
      f16 and f32; f8E4M3FN or f8E5M2 for each of `a` and `b`, and f32; i8, i8
      and i32, on sm_100a and sm_110a.
    - (C3) A in tensor memory is `k_major`, and has the rows of `d`.
    - (C4) tiles in shared memory have a swizzle, and fewer than 2^18 bytes in a
      chunk.
    - (C5) k is a multiple of 32 bytes. If `a` is in shared memory, `k` has it,
      and is by default all of the tile; otherwise it is the number of columns
      of `a`, and `k` is absent.
    - (C6) the part of a tile is not larger than the tile.
    - (C7) a `d` of more than 256 columns, or 128 with `pair`, is two products.
      Half of an `mn_major` B is then a multiple of the span of its swizzle.
    - (C8) `a_row` and `b_row` are multiples of 8. Columns are, of a K-major
      tile, multiples of 32 bytes, and of an MN-major tile multiples of the span
      of its swizzle. The part is inside the tile. The lowering checks
      constants, the bounds checks other values.
    - (C9) with `pair`, `d` has 128 rows, and at most 128 columns or 256. The
      kernel states clusters of two thread blocks, which the lowering checks.

    Example:

    ```mlir
    !kt = !kvcache.tile<64x128xbf16, swizzle_128b>
    !scores = !kvcache.tmem_tile<64x64xf32>
    !bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>

    func.func @score(%q: !kt, %k: !kt, %bars: !bars, %is_issuer: i1,
                     %parity: i1, %ticks: index) -> vector<32xf32> {
      %c0 = arith.constant 0 : index
      %s = kvcache.tmem_alloc : !scores
      scf.if %is_issuer {
        kvcache.tmem_mma %q[%c0, %c0], %k[%c0, %c0] into %s : !kt, !kt, !scores
        kvcache.tmem_commit %bars[%c0] : !bars
      }
      nvgpu.mbarrier.try_wait.parity %bars[%c0], %parity, %ticks : !bars
      %v = kvcache.tmem_load %s[%c0] : !scores -> vector<32xf32>
      return %v : vector<32xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_TmemOperand, "A: in shared or in tensor memory",
        [MemRead]>:$a,
    Arg<Optional<Index>, "the first row of the tile of A">:$a_row,
    Arg<Optional<Index>, "the first column of the tile of A">:$a_column,
    Arg<KVCache_TileType, "the tile of B", [MemRead]>:$b,
    Arg<Index, "the first row of the tile of B">:$b_row,
    Arg<Index, "the first column of the tile of B">:$b_column,
    Arg<KVCache_TmemTileType, "D", [MemRead, MemWrite]>:$d,
    Arg<Optional<I1>, "whether to add to D; by default, it is overwritten">:$add,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$k,
    DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major_a,
    DefaultValuedAttr<KVCache_MajorAttr, "::mlir::kvcache::Major::K">:$major_b,
    UnitAttr:$pair
  );
  let assemblyFormat = [{
    $a (`[` $a_row^ `,` $a_column `]`)? `,` $b `[` $b_row `,` $b_column `]`
    `into` $d (`add` $add^)? attr-dict `:` qualified(type($a)) `,`
    qualified(type($b)) `,` qualified(type($d))
  }];
  let extraClassDeclaration = [{
    /// m, n and k: the rows of A and the columns of D, and the columns of A.
    int64_t getSizeM();
    int64_t getSizeN() { return getD().getType().getColumns(); }
    int64_t getSizeK();
    /// Instructions that the columns of D are divided between.
    int64_t countProducts();
    /// The tile of A in shared memory; null if A is in tensor memory.
    ::mlir::TypedValue<::mlir::kvcache::TileType> getTileA() {
      return ::llvm::dyn_cast<::mlir::TypedValue<::mlir::kvcache::TileType>>(
          getA());
    }
    /// The parts of tiles in shared memory that the op reads: B, and A if it is
    /// there.
    ::llvm::SmallVector<::mlir::kvcache::MatrixPart, 2> getParts();
  }];
  let hasVerifier = 1;
}

def KVCache_TmemCommitOp : KVCache_Op<"tmem_commit", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Arrives when the products of a thread are done";
  let description = [{
    Arrives once at an mbarrier when all products are done that
    this thread has started before. A barrier that expects one arrival
    completes a phase for each `tmem_commit`, so that threads wait for number i
    by the parity of i.

    The thread that executed the products executes the op. Threads that have
    waited can use the results, and everything that the products read.

    With `pair`, the op arrives at the mbarriers of both thread blocks of a
    cluster of two, which are at the same place. The barrier of the other block
    must be initialized, and none of the blocks may end before one of its
    threads has waited.

    Constraints:
    - (C1) with `pair`, the kernel states clusters of two thread blocks. The
      lowering checks it.

    Example:

    ```mlir
    !bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>,
                                  num_barriers = 2>

    func.func @commit(%bars: !bars) {
      %c1 = arith.constant 1 : index
      kvcache.tmem_commit %bars[%c1] : !bars
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_Barriers, "the barriers">:$barriers,
    Arg<Index, "which of the barriers">:$barrier,
    UnitAttr:$pair
  );
  let assemblyFormat =
      "$barriers `[` $barrier `]` attr-dict `:` type($barriers)";
}

/// What `tmem_load` and `tmem_store` have in common.
defvar KVCache_TmemFragment = [{
    The 128 threads of a warpgroup (four warps, from a multiple of four on)
    execute the op together, for 64 rows of the tile and n columns from `column`
    on, in the fragments of `mma`: each thread has n / 2 elements. Warp w of the
    warpgroup accesses the rows

    - 16 w to 16 w + 15 of a tile of 64 rows,
    - 32 w + 16 `half` to 32 w + 16 `half` + 15 of a tile of 128 rows, because a
      warp reaches a quarter of tensor memory.

    So two warpgroups share a tile of 128 rows, or one accesses first one half of
    its warps' rows, then the other one. Of its 16 rows, lane l has

    - of elements of 32 bits, for each 8 columns: columns 2 (l mod 4) and the
      next of row l / 4, then of row l / 4 + 8;
    - of smaller elements, for each 16 bytes of columns: the 4 bytes l mod 4 of
      row l / 4, then of row l / 4 + 8.

    A tile of smaller elements is A of a product. The lanes have what they have of
    `mma`'s D, converted to 16 bits.

    A `!kvcache.fragment` in the layout `tmem_acc` has the same elements. The
    number of a warp then says which half it accesses: warps 4 to 7 of each
    eight have `half` 1.

    With `whole_rows`, one warpgroup accesses all 128 rows of a tile: lane l of
    its warp w has the n elements of row 32 w + l in order. A `!kvcache.fragment`
    in the layout `tmem_row` is such an access, without the attribute.
}];

defvar KVCache_TmemFragmentConstraints = [{
    Constraints:
    - (C1) the element type of the vector is that of the tile.
    - (C2) `half` is there if the tile has 128 rows and `whole_rows` is not set,
      and only then. It is 0 or 1, and the same in all threads of a warp.
    - (C3) the vector has n / 2 lanes, with `whole_rows` n, where n is a multiple
      of 8 columns of 16 or 32 bits, or 16 columns of 8 bits.
    - (C4) `column` is such a multiple too, and the fragment is inside the tile.
      Of a tile of 64 rows with more than 256 columns of 32 bits, it is inside
      one half of the columns. The lowering checks constants.
    - (C5) a fragment has two dimensions, the layout `tmem_acc` or `tmem_row`,
      the rows and the element type of the tile, elements of 16 or 32 bits, and
      neither `half` nor `whole_rows`.
    - (C6) with `whole_rows`, the tile has 128 rows.
}];

/// A vector of the elements of a thread, or a fragment.
def KVCache_TmemPart : AnyTypeOf<[KVCache_FixedVector1D, KVCache_FragmentType],
    "1-D vector of fixed length or fragment">;

def KVCache_TmemLoadOp : KVCache_Op<"tmem_load"> {
  let summary = "Reads a fragment of a tile in tensor memory";
  let description = [{
    Reads a part of a tile, and waits for it.
    }] # KVCache_TmemFragment # KVCache_TmemFragmentConstraints # [{

    Example:

    ```mlir
    !sums = !kvcache.tmem_tile<128x256xf32>

    !part = !kvcache.fragment<128x32xf32, tmem_acc>

    func.func @load(%sums: !sums, %half: index, %c: index) -> vector<16xf32> {
      %v = kvcache.tmem_load %sums[%c] half %half : !sums -> vector<16xf32>
      return %v : vector<16xf32>
    }

    func.func @load_fragment(%sums: !sums, %c: index) -> !part {
      %f = kvcache.tmem_load %sums[%c] : !sums -> !part
      return %f : !part
    }

    func.func @load_row(%sums: !sums, %c: index) -> vector<32xf32> {
      %v = kvcache.tmem_load %sums[%c] {whole_rows} : !sums -> vector<32xf32>
      return %v : vector<32xf32>
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_TmemTileType, "the tile", [MemRead]>:$tile,
    Arg<Index, "the first column">:$column,
    Arg<Optional<Index>, "which of the halves of a warp's rows">:$half,
    UnitAttr:$whole_rows
  );
  let results = (outs Res<KVCache_TmemPart, "the part">:$result);
  let assemblyFormat = [{
    $tile `[` $column `]` (`half` $half^)? attr-dict `:`
    qualified(type($tile)) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The columns of the part.
    int64_t countColumns();
  }];
  let hasVerifier = 1;
}

def KVCache_TmemStoreOp : KVCache_Op<"tmem_store"> {
  let summary = "Writes a fragment of a tile in tensor memory";
  let description = [{
    Writes a part of a tile, and waits until it is written.
    }] # KVCache_TmemFragment # KVCache_TmemFragmentConstraints # [{

    Example:

    ```mlir
    !probs = !kvcache.tmem_tile<64x64xbf16>

    func.func @store(%v: vector<32xbf16>, %probs: !probs) {
      %c0 = arith.constant 0 : index
      kvcache.tmem_store %v, %probs[%c0] : vector<32xbf16>, !probs
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_TmemPart, "the part">:$value,
    Arg<KVCache_TmemTileType, "the tile", [MemWrite]>:$tile,
    Arg<Index, "the first column">:$column,
    Arg<Optional<Index>, "which of the halves of a warp's rows">:$half,
    UnitAttr:$whole_rows
  );
  let assemblyFormat = [{
    $value `,` $tile `[` $column `]` (`half` $half^)? attr-dict `:`
    type($value) `,` qualified(type($tile))
  }];
  let extraClassDeclaration = [{
    /// The columns of the part.
    int64_t countColumns();
  }];
  let hasVerifier = 1;
}

#endif // KVCACHE_IR_TENSORMEMORYOPS_TD
