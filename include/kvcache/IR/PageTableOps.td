//===- PageTableOps.td - Page-table prefetch -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_PAGETABLEOPS_TD
#define KVCACHE_IR_PAGETABLEOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

def KVCache_PopulateOp : KVCache_Op<"populate", !listconcat(
    KVCache_TableRead, [KVCache_Access<[
      "getAccessedBatch", "getAccessedToken", "getAccessedTokens"]>])> {
  let summary = "Reads the rows of consecutive tokens from the lookup table";
  let description = [{
    Gives the rows of the tokens `base, base + 1, …` of a sequence, with one
    entry of the lookup table for each page. One load reads several entries, as
    the alignment of `base` allows: for n pages,
    `min(lowpow2(n), lowpow2(base_alignment / P), 8)` entries, where lowpow2(x)
    is the largest power of two that divides x. Without `base_alignment`, `base`
    must be a multiple of the number of rows. Fewer rows than a page has must
    lie in one page; so must all rows if the page size is known only at run
    time.

    Constraints:
    - (C1) the page size of `rows` is that of the cache; for a continuous cache,
      `rows` has no page size.
    - (C2) `base_alignment`, if given, is positive; for rows of several pages,
      it is a multiple of the page size.
    - (C3) the distance between pages is a whole number of rows; the bounds
      checks check it.

    Example:

    ```mlir
    #kv = #kvcache.params<num_heads = 8, head_size = 128>
    !cache = !kvcache.paged<bf16, #kv, page_size = 64>
    !rows = !kvcache.row_indices<rows = 128, page_size = 64>

    func.func @rows(%k: !cache, %b: index, %base: index) -> !rows {
      %rows = kvcache.populate %k[%b, %base] {base_alignment = 128}
                : !cache -> !rows
      return %rows : !rows
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_AnyViewWithRows, "the cache">:$cache,
    Arg<Index, "the sequence in the batch">:$batch,
    Arg<Index, "the first token; page-aligned for several pages">:$base,
    OptionalAttr<I64Attr>:$base_alignment
  );
  let results = (outs Res<KVCache_RowIndicesType, "the rows">:$rows);
  let assemblyFormat = [{
    $cache `[` $batch `,` $base `]` attr-dict `:` qualified(type($cache)) `->`
    qualified(type($rows))
  }];
  let extraClassDeclaration = [{
    /// The known alignment of `base`: the attribute, or the number of rows.
    int64_t getKnownBaseAlignment();
    /// Entries of the lookup table that one load reads.
    int64_t getReadWidth();
  }];
  let hasVerifier = 1;
}

def KVCache_GetRowOp : KVCache_Op<"get_row", [NoMemoryEffect,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "The row of one token of populated rows";
  let description = [{
    Gives the row of token `base + offset`. If the offset is constant, the op
    uses the entry that `populate` read. Otherwise it reads the entry from the
    lookup table again: the entry is in the L1 cache, whereas an index into
    registers would need local memory.

    Example:

    ```mlir
    !rows = !kvcache.row_indices<rows = 128, page_size = 64>

    func.func @row(%rows: !rows, %offset: index) -> index {
      %r = kvcache.get_row %rows[%offset] : !rows
      return %r : index
    }
    ```
  }];
  let arguments = (ins
    Arg<KVCache_RowIndicesType, "the rows">:$rows,
    Arg<Index, "the offset from the first token, below the number of rows">
        :$offset
  );
  let results = (outs Res<Index, "the row in the view">:$row);
  let assemblyFormat = [{
    $rows `[` $offset `]` attr-dict `:` qualified(type($rows))
  }];
}

#endif // KVCACHE_IR_PAGETABLEOPS_TD
