//===- BundleChecks.cpp - Checks of a cache's tensors ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/PageTableOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Checks that a lookup table has a row for each sequence.
static void checkRows(CheckBuilder &c, Value sequences, Value table,
                      StringRef name) {
  Value rows = c.getSize(table, 0);
  c.checkBelow(sequences, arith::AddIOp::create(c.b, rows, c.index(1)),
               ("number of sequences with a row in '" + name + "'").str());
}

/// Returns whether entries are read together, as only `populate` does.
static bool readsEntriesTogether(BundleOpInterface op) {
  return op->getParentOfType<ModuleOp>()
      .walk([](PopulateOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Checks that rows of the table are as aligned as wide loads of entries.
static void checkRowStride(CheckBuilder &c, BundleOpInterface op) {
  constexpr int64_t unit = 8;
  auto metadata =
      memref::ExtractStridedMetadataOp::create(c.b, op.getLookupTable());
  c.checkMultiple(metadata.getStrides()[0], unit,
                  "row stride of 'lookup_table'");
}

/// Checks that the lookup table, or its index, has rows for all sequences.
static void checkTable(CheckBuilder &c, BundleOpInterface op, Value sequences,
                       TableKind kind) {
  if (kind == TableKind::Dense)
    return checkRows(c, sequences, op.getLookupTable(), "lookup_table");
  if (kind == TableKind::Rows) {
    if (readsEntriesTogether(op))
      checkRowStride(c, op);
    return checkRows(c, sequences, op.getTableIndex(), "table_index");
  }
  // The last entry is the end.
  Value starts = c.getSize(op.getTableIndex(), 0);
  c.checkBelow(sequences, starts,
               "number of sequences with a start and an end in 'table_index'");
}

/// Checks the promises of a type with an open page size: pages have rows, and
/// pages of scales have as many.
static void checkPageSize(CheckBuilder &c, BundleOpInterface op) {
  unsigned tokens = getTokensDim(op.getBlocks().getType());
  Value pageSize = c.getSize(op.getBlocks(), tokens);
  c.checkBelow(c.index(0), pageSize, "0, which must be below the page size,");
  if (!op.getScales())
    return;
  Value difference =
      arith::SubIOp::create(c.b, c.getSize(op.getScales(), tokens), pageSize);
  c.checkBelow(
      difference, c.index(1),
      "difference of the page sizes of 'scales' and 'blocks', which must "
      "be 0,");
}

/// Checks that elements at the stride of a dimension do not overlap.
static void checkStride(CheckBuilder &c, unsigned dim, unsigned rank,
                        memref::ExtractStridedMetadataOp tensor,
                        ArrayRef<Value> reaches, MemRefType type,
                        StringRef name) {
  auto isAtMost = [&](Value lhs, Value rhs) -> Value {
    return arith::CmpIOp::create(c.b, arith::CmpIPredicate::sle, lhs, rhs);
  };
  Value stride = tensor.getStrides()[dim];
  Value span = tensor.getSizes()[rank];
  for (unsigned other = 0; other < rank; ++other)
    if (other != dim && type.getDimSize(other) != 1)
      span = arith::AddIOp::create(
          c.b, span,
          arith::SelectOp::create(c.b,
                                  isAtMost(tensor.getStrides()[other], stride),
                                  reaches[other], c.index(0)));
  Value isApart =
      arith::OrIOp::create(c.b, isAtMost(span, stride),
                           isAtMost(tensor.getSizes()[dim], c.index(1)));
  Value excess = arith::SelectOp::create(c.b, isApart, c.index(0), c.index(1));
  c.checkBelow(excess, c.index(1),
               ("stride " + Twine(dim) + " of '" + name +
                "', at which elements overlap,")
                   .str());
}

/// Checks that no two elements share memory: the stride of a dimension of
/// several is at least what all dimensions with smaller strides span.
static void checkDisjoint(CheckBuilder &c,
                          memref::ExtractStridedMetadataOp tensor,
                          MemRefType type, StringRef name) {
  if (type.getLayout().isIdentity())
    return;
  unsigned rank = type.getRank() - 1;
  SmallVector<Value> reaches;
  for (auto [size, stride] :
       llvm::zip_equal(tensor.getSizes(), tensor.getStrides()))
    reaches.push_back(arith::MulIOp::create(
        c.b, stride,
        arith::MaxSIOp::create(c.b, c.index(0),
                               arith::SubIOp::create(c.b, size, c.index(1)))));
  // The heads first, whose stride may be open.
  for (unsigned i = 0; i < rank; ++i)
    if (unsigned dim = rank - 1 - i; type.getDimSize(dim) != 1)
      checkStride(c, dim, rank, tensor, reaches, type, name);
}

/// Checks that outer strides are no negative numbers, and multiples of the
/// alignment that accesses count on.
static void checkDistances(CheckBuilder &c, TypedValue<MemRefType> tensor,
                           StringRef name, CacheTypeInterface view) {
  MemRefType type = tensor.getType();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return;
  int64_t factor = getDistanceUnit(view);
  auto metadata = memref::ExtractStridedMetadataOp::create(c.b, tensor);
  unsigned tokens = getTokensDim(type);
  for (unsigned dim = 0; dim < tokens; ++dim) {
    if (type.getDimSize(dim) == 1)
      continue;
    std::string what = ("stride " + Twine(dim) + " of '" + name + "'").str();
    Value stride = metadata.getStrides()[dim];
    c.checkBelow(stride, c.index(std::numeric_limits<int64_t>::max()), what);
    c.checkMultiple(stride, factor, what);
  }
  if (LayoutAttrInterface layout = view.getLayout();
      layout && layout.getRoleStride() && tokens == 3)
    c.checkEqual(metadata.getStrides()[1], layout.getRoleStride(),
                 ("stride 1 of '" + name + "'").str());
  if (view.hasOpenHeadStride())
    c.checkMultiple(
        metadata.getStrides()[tokens + 1], factor,
        ("stride " + Twine(tokens + 1) + " of '" + name + "'").str());
  checkDisjoint(c, metadata, type, name);
}

void kvcache::checkBundle(CheckBuilder &c, BundleOpInterface op) {
  CacheTypeInterface type = op.getBundle().getType();
  Value sequences = c.getSize(op.getCacheLengths(), 0);
  checkTable(c, op, sequences, type.getTable());
  // Distances between pages without tokens have no meaning.
  if (type.isPaged() && !type.hasStaticPageSize())
    checkPageSize(c, op);
  checkDistances(c, op.getBlocks(), "blocks",
                 getViewType(type, /*isScales=*/false));
  if (!op.getScales())
    return;
  if (Value table = op.getScalesLookupTable())
    checkRows(c, sequences, table, "scales_lookup_table");
  checkDistances(c, op.getScales(), "scales",
                 getViewType(type, /*isScales=*/true));
}
