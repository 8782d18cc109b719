//===- WholeCacheOperands.td - Operands of ops on whole caches -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_WHOLECACHEOPERANDS_TD
#define KVCACHE_IR_WHOLECACHEOPERANDS_TD

include "kvcache/IR/KVCacheOpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

class KVCache_WholeCacheOp<string mnemonic, list<Trait> traits = []>
    : KVCache_Op<mnemonic, !listconcat([
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>], traits)>;

class KVCache_DenseOf<list<Type> elements, int rank>
    : AnyTypeOf<[MemRefRankOf<elements, [rank]>, TensorRankOf<elements, [rank]>]>;

/// Rows of heads, such as new keys: [total, heads, elements].
def KVCache_DenseRows : KVCache_DenseOf<[F32, F16, BF16], 3>;
/// Gathered tokens, by sequences or ragged.
def KVCache_GatheredRows
    : AnyTypeOf<[KVCache_DenseOf<[F32, F16, BF16], 4>, KVCache_DenseRows]>;
/// Offsets, ids or positions: unsigned, unless an op says otherwise.
def KVCache_Numbers : KVCache_DenseOf<[I32], 1>;
def KVCache_WideNumbers : KVCache_DenseOf<[I32, I64], 1>;
/// Positions on one axis, or on each of several.
def KVCache_Positions
    : AnyTypeOf<[KVCache_WideNumbers, KVCache_DenseOf<[I32, I64], 2>]>;
/// Such rows as attention reads and writes.
def KVCache_NarrowRows : KVCache_DenseOf<[F32, F16, BF16, F8E4M3FN, F8E5M2], 3>;
/// Such rows as index queries: floats, or bytes of two elements of 4 bits.
def KVCache_IndexQueries
    : KVCache_DenseOf<[F32, F16, BF16, F8E4M3FN, F8E5M2, I8], 3>;
/// Such rows of fp8.
def KVCache_FP8Rows : KVCache_DenseOf<[F8E4M3FN, F8E5M2], 3>;
/// A factor of all elements of a cache, or one for each head.
def KVCache_StaticScale : AnyTypeOf<[F32, KVCache_DenseOf<[F32], 1>]>;
/// Scores of tokens, by rows or by rows and heads.
def KVCache_Scores : AnyTypeOf<[KVCache_DenseOf<[F32], 2>, KVCache_DenseOf<[F32], 3>]>;
/// Numbers of selected rows, in the same order.
def KVCache_SelectedRows
    : AnyTypeOf<[KVCache_DenseOf<[I32], 2>, KVCache_DenseOf<[I32], 3>]>;
/// Memory for the candidates of splits of such rows.
def KVCache_SelectionWorkspace : MemRefRankOf<[I32], [3, 4]>;
/// A number that may be 0.
def KVCache_Count : ConfinedAttr<I64Attr, [IntNonNegative]>;
/// Threads of a block of a GPU: whole warps.
def KVCache_BlockThreads : ConfinedAttr<I64Attr, [
    AttrConstraint<And<[IntMinValue<32>.predicate, IntMaxValue<1024>.predicate,
                        CPred<"::llvm::cast<::mlir::IntegerAttr>($_self)"
                              ".getInt() % 32 == 0">]>,
                   "whose value is a multiple of 32 from 32 to 1024">]>;
/// Heads of a thread.
def KVCache_HeadsPerThread : ConfinedAttr<I64Attr, [
    AttrConstraint<And<[IntMinValue<1>.predicate, IntMaxValue<32>.predicate]>,
                   "whose value is from 1 to 32">]>;
/// The hints of `TiledOpInterface`.
defvar KVCache_BlockThreadsArgument = (ins
  OptionalAttr<KVCache_BlockThreads>:$block_threads
);
defvar KVCache_TilingArguments = (ins
  OptionalAttr<KVCache_BlockThreads>:$block_threads,
  OptionalAttr<KVCache_HeadsPerThread>:$heads_per_thread
);
/// A number of tokens, parts or rows.
def KVCache_SplitSize
    : ConfinedAttr<I64Attr, [IntPositive, IntMaxValue<1048576>]>;

#endif // KVCACHE_IR_WHOLECACHEOPERANDS_TD
