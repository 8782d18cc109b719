//===- AttentionTables.h - How blocks divide attention ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables of choices. In each, the first row that fits an op is taken. A
// remark of `kvcache-expand-ops` says what was chosen, and the table in
// docs/explanation/choices-of-attention.md has the outcome for common ops.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONTABLES_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONTABLES_H

#include "ThreadRegisters.h"

#include <limits>

namespace mlir::kvcache {

constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();

/// The caches that a row of a table is for: keys and values, or latent rows.
enum class Caches { Any, Values, Latent };

/// The tokens that it is for: those of a sequence, or sparse rows.
enum class Tokens { Any, Sequence, SequenceInSplits, Ids };

//===----------------------------------------------------------------------===//
// Query rows of a block
//===----------------------------------------------------------------------===//

/// Query rows of a block, where `config` does not give them.
struct RowsChoice {
  Caches caches;
  Tokens tokens;
  /// Query heads of a head of the cache, at least.
  int64_t heads;
  /// Bits of the cache's elements, at least.
  int64_t bits;
  /// Only caches that warps can dequantize in registers.
  bool dequantizesInRegisters;
  /// The rows; 0 without tensor cores. A block has one sparse row, or the new
  /// tokens of a sequence that is split, for at most so many heads: rows beyond
  /// these would be wasted.
  int64_t rows;
};

// A tile of latent rows and their queries leave room for 32 rows in shared
// memory. Measured on H200 for splits of 256 tokens, in % of the bandwidth, by
// warps and by tiles of 16 rows: bf16 with 4 heads 62 and 75, with 8 heads 29
// and 70, and with 1 head 84 by warps; fp8 with 4 heads 33 and 28, with a scale
// for 128 elements 24 and 25, of tiles whose elements threads convert once for
// all heads of a tile. In-register dequantization takes a third of the
// instructions of these, or less, with any number of heads: not measured. Few
// heads of sparse rows are read once by warps.
constexpr RowsChoice kRows[] = {
    // clang-format off
    // caches          tokens                    heads bits dequant rows
    {Caches::Values, Tokens::SequenceInSplits, 1,   0,   true,  32},
    {Caches::Values, Tokens::Sequence,        1,   0,   false, 64},
    {Caches::Values, Tokens::SequenceInSplits, 8,   0,   false, 64},
    {Caches::Values, Tokens::SequenceInSplits, 4,   16,  false, 64},
    {Caches::Values, Tokens::SequenceInSplits, 1,   0,   false, 0},
    {Caches::Values, Tokens::Ids,             8,   0,   false, 64},
    {Caches::Values, Tokens::Ids,             1,   0,   false, 0},
    {Caches::Latent,   Tokens::Any,               1,   0,   false, 32},
    // clang-format on
};

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Whether keys and values are the left operands: never, unless `swap_ab` is
/// false, or only if it is true.
enum class Swap { Never, ByDefault, OnRequest };

/// The tiles that a row is for: all, those whose products overlap the softmax,
/// of 16 bits without a soft cap, masks or regions, or those of elements of
/// fewer bits, which threads convert.
enum class Products { Any, Overlapped, Converted };

/// Tiles of a block, and what multiplies them.
struct TilesChoice {
  /// A feature that all chips have.
  Feature chips;
  Caches caches;
  /// A divisor of the number of query heads of a head of the cache.
  int64_t heads;
  Tokens tokens;
  /// Query rows of a block, from and up to.
  int64_t leastRows, mostRows;
  /// Elements of a key or a value, up to.
  int64_t size;

  MmaKind mma;
  /// Query rows, unless `config` gives them; 0 for those of the first table.
  int64_t rows;
  /// Tokens of a tile, and tiles. Where there is no room for these, warps have
  /// one tile, and others tiles of fewer tokens.
  int64_t tokensOfTile, tiles;
  /// Shared memory of queries and tiles.
  int64_t bytes;
  /// Elements of an accumulator that a warp, a warpgroup or tensor memory
  /// keeps, without and with splits, whose code takes registers, too. Two warps
  /// or warpgroups share longer ones.
  int64_t acc, accOfSplits;
  /// Tiles of raw elements of 8 bits, at most, if there is room for these.
  int64_t rawStages;
  Swap swap = Swap::Never;
  Products products = Products::Any;
};

constexpr Feature kWgmma = Feature::WGMMA, kTmem = Feature::TensorMemory,
                  kAll = Feature::None;
constexpr Caches kBoth = Caches::Any, kValues = Caches::Values,
                 kLatent = Caches::Latent;
constexpr Tokens kTokens = Tokens::Any, kSequence = Tokens::Sequence;
constexpr MmaKind kBySync = MmaKind::Sync, kByWgmma = MmaKind::Wgmma,
                  kByTcgen05 = MmaKind::Tcgen05;
/// Bytes that the chips have, and that every chip from sm_80 on has.
constexpr int64_t kChip = 0, kEvery = 96 << 10;

// Long accumulators leave registers for the scores of few tokens. The
// scores of a warpgroup are those of all of its warps, so that long latent rows
// have as many tokens as others. Products of 64 rows into tensor memory take as
// long as those of 128, but 128 rows have no room for accumulators of 512
// elements. Products with swapAB read a tile from shared memory once for all
// query rows. For decode steps of latent caches they took 274 us with 16 heads
// on an H200, and products of warps 322 us; with 32 heads 364 and 388 us. Raw
// tiles are for blocks that have a multiprocessor alone or with few others:
// loads of several blocks are under way while one computes.
//
// Measured on H200 for prompts whose products do not overlap, in % of the peak
// of tensor cores, with 64 and 128 rows: heads of 128 46 and 60, with a window
// 39 and 37; heads of 64 39 and 37; heads of 256, in tiles of 32 tokens, 41 and
// 40. Those that overlap have the rows and tokens of FlashAttention-3, or fewer
// tokens where registers are missing. Elements that threads convert take a
// third fewer instructions in tiles of 128 rows and 128 tokens: not measured.
constexpr TilesChoice kTiles[] = {
    // clang-format off
    // chips, caches, heads, tokens, rows from and to, size;
    // MMA, rows, tokens of a tile, tiles, bytes, acc without and with splits,
    // raw tiles, swap, products
    {kWgmma, kLatent, 1,  kTokens,   16,  32,  kAnySize, kByWgmma, 0,   64, 2, kChip,  512, 512, 2, Swap::OnRequest},
    {kWgmma, kValues, 1,  kTokens,   16,  32,  kAnySize, kByWgmma, 0,   64, 2, kChip,  256, 256, 0, Swap::OnRequest},
    {kTmem,  kLatent, 64, kTokens,   0,   32,  kAnySize, kByTcgen05, 64,  64, 2, kChip,  512, 512, 2},
    {kTmem,  kValues, 1,  kSequence, 64,  64,  kAnySize, kByTcgen05, 128, 64, 2, kChip,  256, 256, 0},
    {kTmem,  kValues, 1,  kTokens,   64,  128, kAnySize, kByTcgen05, 0,   64, 2, kChip,  256, 256, 0},
    {kWgmma, kLatent, 64, kTokens,   0,   32,  kAnySize, kByWgmma, 64,  64, 2, kChip,  256, 256, 2},
    {kWgmma, kLatent, 1,  kTokens,   16,  32,  kAnySize, kByWgmma, 0,   64, 2, kChip,  512, 512, 2, Swap::ByDefault},
    {kWgmma, kValues, 1,  kSequence, 64,  64,  256,  kByWgmma, 128, 64, 2, kChip,  256, 256, 0, Swap::Never, Products::Overlapped},
    {kWgmma, kValues, 1,  kSequence, 64,  64,  128,  kByWgmma, 128, 128, 2, kChip,  256, 256, 0, Swap::Never, Products::Converted},
    {kWgmma, kValues, 1,  kTokens,   64,  128, 128,  kByWgmma, 0,   64, 2, kChip,  256, 256, 0},
    {kWgmma, kValues, 1,  kTokens,   64,  64,  256,  kByWgmma, 0,   32, 2, kChip,  256, 256, 0},
    {kWgmma, kValues, 1,  kTokens,   128, 128, 256,  kByWgmma, 0,   64, 2, kChip,  256, 256, 0},
    {kAll,   kLatent, 1,  kTokens,   0,   64,  128,  kBySync,  0,   64, 2, kEvery, 256, 128, 2},
    {kAll,   kLatent, 1,  kTokens,   0,   64,  256,  kBySync,  0,   32, 2, kEvery, 256, 128, 2},
    {kAll,   kLatent, 1,  kTokens,   0,   64,  kAnySize, kBySync,  0,   16, 2, kEvery, 256, 128, 2},
    {kAll,   kValues, 1,  kTokens,   0,   64,  128,  kBySync,  0,   64, 2, kEvery, 256, 128, 0},
    {kAll,   kValues, 1,  kTokens,   0,   64,  256,  kBySync,  0,   32, 2, kEvery, 256, 128, 0},
    {kAll,   kBoth,   1,  kTokens,   128, 128, 128,  kBySync,  0,   64, 2, kEvery, 256, 256, 0},
    {kAll,   kBoth,   1,  kTokens,   128, 128, 256,  kBySync,  0,   32, 2, kEvery, 256, 256, 0},
    // clang-format on
};

/// Bytes of shared memory beside tiles of keys, values and queries: barriers,
/// ids of sparse rows, and what aligns tiles.
constexpr int64_t kBesideTiles = 4 << 10;
/// The most query rows of a block if the config has an MMA, but the table
/// computes such ops without tensor cores.
constexpr int64_t kMostFewRows = 64;
/// Rows of a block with swapAB, at most: they are columns of products.
constexpr int64_t kMostSwapABRows = 32;
/// The fewest rows of a block, and tokens of a tile: those of a product.
constexpr int64_t kLeastRows = 16, kLeastTokens = 16;

/// Tokens of a tile whose products overlap, by the elements of a value: of
/// causal products; with code for a begin or a soft cap, or for copies of few
/// rows; and with that of a mask. A thread has registers for the accumulator,
/// the scores of a tile and the probs of another. More tokens spill
/// (ptxas 13.0).
struct OverlappedTokens {
  int64_t valueSize, tokens, tokensWithCode, tokensWithMask;
};
constexpr OverlappedTokens kOverlappedTokens[] = {
    {64, 128, 128, 128}, {128, 128, 128, 96}, {160, 128, 112, 96},
    {192, 112, 96, 96},  {224, 96, 80, 64},   {256, 80, 64, 64}};
/// The most elements of a value of `ranges` whose products overlap.
constexpr int64_t kMostOfRanges = 128;
/// The fewest elements of an accumulator that a warp keeps.
constexpr int64_t kLeastColumns = 16;

//===----------------------------------------------------------------------===//
// Persistent kernels
//===----------------------------------------------------------------------===//

// A persistent kernel computes the splits of ragged sequences: a grid with a
// block for each possible split has mostly blocks without work. All sparse rows
// have as many splits, which `max` of `split` can say. `mma.sync` of older
// chips has no registers left where rows are latent.
constexpr Feature kPersistent = Feature::TMA;
/// Multiprocessors of the largest GPUs. Blocks that find no room begin when the
/// others have taken all work items, and end.
constexpr int64_t kMultiprocessors = 192;
/// Registers of a multiprocessor, and of a thread, and bytes of shared memory
/// that each block takes besides its own.
constexpr int64_t kRegisters = 1 << 16, kMostRegisters = 256,
                  kReserved = 1 << 10;
/// Registers of a thread beside the accumulator of products with swapAB.
constexpr int64_t kBesideAcc = 128;
/// Registers of threads that copy and of those that multiply, with copies of
/// many rows each, and of few.
constexpr ThreadRegisters kWithLongBoxes{24, 240}, kWithShortBoxes{40, 232};
/// Keys of a tile with roles: as many as tensor memory has room for, or fewer,
/// where copies of more would spill (ptxas 13.0).
constexpr int64_t kRolesKeys = 128, kFewRolesKeys = 64;
/// Likewise of threads with roles: those that copy or start products, which
/// keep addresses of several boxes, and those that have a row. With few keys,
/// boxes may be short, and a row takes fewer registers.
constexpr ThreadRegisters kWithRoles{56, 224}, kWithRolesOfFewKeys{88, 208};
/// The fewest registers of a thread that multiplies by `mma.sync`, and the
/// divisor of their number, for keys of so many elements: longer ones need all.
constexpr int64_t kLeastRegisters = 168, kRegisterGranule = 8,
                  kMostBounded = 64;

//===----------------------------------------------------------------------===//
// What the L2 cache evicts first
//===----------------------------------------------------------------------===//

/// The priority of lines that one block reads once, unless `config` gives it.
/// Others have no hint.
constexpr Eviction kOfStreams = Eviction::First;

//===----------------------------------------------------------------------===//
// Warps without tensor cores
//===----------------------------------------------------------------------===//

/// Elements of a row that a lane keeps at most, where that is possible.
constexpr int64_t kMostElements = 32;
/// Floats of queries and accumulators of a lane.
constexpr int64_t kMostFloats = 96;
/// Elements of a lane above which it has loads of 2 tokens in flight, not 4.
constexpr int64_t kFewElements = 16;

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONTABLES_H
