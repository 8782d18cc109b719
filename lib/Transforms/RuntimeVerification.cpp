//===- RuntimeVerification.cpp - Checks of an op at run time --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/RuntimeVerification.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/PageTableOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The view of the scales of a cache, which may be the operand itself.
static TypedValue<CacheTypeInterface>
getScales(OpBuilder &builder, Location loc,
          TypedValue<CacheTypeInterface> cache) {
  if (isa<ScalesType>(cache.getType()))
    return cache;
  return cast<TypedValue<CacheTypeInterface>>(
      ScalesViewOp::create(builder, loc, cache).getResult());
}

namespace {

/// Inserts the checks of one op before it.
class Checker {
public:
  Checker(OpBuilder &builder, Location loc, Operation *op)
      : builder(builder), loc(loc), name(op->getName().getStringRef()) {}

  /// Checks the promises of a cache's tensors: entries of the lookup table for
  /// every sequence, and distances that keep pages as aligned as accesses.
  void checkBundle(BundleOpInterface op) {
    CacheTypeInterface type = op.getBundle().getType();
    Value sequences = size(op.getCacheLengths(), 0);
    checkTable(op, sequences, type.getTable());
    // Distances between pages without tokens have no meaning.
    if (type.isPaged() && !type.hasStaticPageSize())
      checkPageSize(op);
    checkDistances(op.getBlocks(), "blocks",
                   getViewType(type, /*ofScales=*/false));
    if (!op.getScales())
      return;
    if (Value table = op.getScalesLookupTable())
      checkRows(sequences, table, "scales_lookup_table");
    checkDistances(op.getScales(), "scales",
                   getViewType(type, /*ofScales=*/true));
  }

  /// The lookup table, or its index, has rows for all sequences.
  void checkTable(BundleOpInterface op, Value sequences, TableKind kind) {
    if (kind == TableKind::Dense)
      return checkRows(sequences, op.getLookupTable(), "lookup_table");
    if (kind == TableKind::Rows) {
      if (readsEntriesTogether(op))
        checkRowStride(op);
      return checkRows(sequences, op.getTableIndex(), "table_index");
    }
    // The last entry is the end.
    Value starts = size(op.getTableIndex(), 0);
    below(sequences, starts,
          "number of sequences with a start and an end in 'table_index'");
  }

  /// Only `populate` reads several entries at once.
  static bool readsEntriesTogether(BundleOpInterface op) {
    return op->getParentOfType<ModuleOp>()
        .walk([](PopulateOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  void checkRowStride(BundleOpInterface op) {
    constexpr int64_t unit = 8;
    auto metadata = memref::ExtractStridedMetadataOp::create(
        builder, loc, op.getLookupTable());
    multipleOf(metadata.getStrides()[0], unit, "row stride of 'lookup_table'");
  }

  /// Checks the promises of a type with an open page size: pages have rows, and
  /// pages of scales have as many.
  void checkPageSize(BundleOpInterface op) {
    unsigned tokens = getTokensDim(op.getBlocks().getType());
    Value pageSize = size(op.getBlocks(), tokens);
    below(index(0), pageSize, "0, which must be below the page size,");
    if (!op.getScales())
      return;
    Value difference = arith::SubIOp::create(
        builder, loc, size(op.getScales(), tokens), pageSize);
    below(difference, index(1),
          "difference of the page sizes of 'scales' and 'blocks', which must "
          "be 0,");
  }

  void checkView(Value collection, Value layer) {
    below(layer, extent(Extent::Layers, collection), "layer");
  }

  void checkAccess(AccessOpInterface op) {
    TypedValue<CacheTypeInterface> cache = op.getAccessedCache();
    if (Value batch = op.getAccessedBatch(); batch && readsTable(op))
      below(batch, extent(Extent::Batch, cache), "sequence");
    if (Value head = op.getAccessedHead())
      checkHead(head, cache.getType());
    TypedValue<CacheTypeInterface> scales;
    if (op.accessesScales())
      scales = getScales(builder, loc, cache);
    // Scales of elements that exist, exist.
    if (Value element = op.getAccessedElement())
      checkElement(element, op.getAccessedWidth(),
                   (op.accessesElements() ? cache : scales).getType());
    if (auto copy = dyn_cast<TileCopyOpInterface>(*op);
        copy && !copy.getRowIds())
      return checkCopiedTokens(copy);
    Value token = op.getAccessedToken();
    if (token && op.accessesElements())
      checkTokens(op, token, cache, op.getPageOperand());
    if (token && op.accessesScales())
      checkTokens(op, token, scales, op.getScalePageOperand());
  }

  /// `get_row`: the offset is below the number of rows.
  void checkOffset(Value offset, RowIndicesType rows) {
    below(offset, index(rows.getRows()), "row offset");
  }

  /// `tma_row`: the page of a non-negative id exists.
  void checkEncodedRow(Value encoded, TypedValue<CacheTypeInterface> cache) {
    if (!cache.getType().isPaged())
      return;
    Value zero = index(0);
    Value negative = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::slt, encoded, zero);
    Value page = arith::DivUIOp::create(builder, loc, encoded, pageSize(cache));
    Value checked = arith::SelectOp::create(builder, loc, negative, zero, page);
    below(checked, extent(Extent::Pages, cache), "page of the encoded row id");
  }

  /// An op on `lanes` elements of a tile's row.
  template <typename OpTy> void checkTile(OpTy op, int64_t lanes) {
    tma::TileLayout layout = op.getTile().getType().getLayout();
    below(op.getRow(), index(layout.rows), "row");
    below(op.getColumn(), index(layout.columns - lanes + 1), "column");
    multipleOf(op.getColumn(), lanes, "column");
  }

  void checkMatrices(ArrayRef<MatrixPart> parts) {
    for (const MatrixPart &part : parts) {
      std::string row = (part.name + "_row").str();
      below(part.row, index(part.getLastRow() + 1), row);
      multipleOf(part.row, part.rowUnit, row);
      std::string column = (part.name + "_column").str();
      below(part.column, index(part.getLastColumn() + 1), column);
      multipleOf(part.column, part.columnUnit, column);
    }
  }

  /// Rows that are stored are inside the memref. The region has their places.
  void checkRows(StoreRowsOp op) {
    OpBuilder::InsertionGuard guard(builder);
    Operation *yield = op.getBody().front().getTerminator();
    builder.setInsertionPoint(yield);
    Value memref = op.getMemref();
    Value isStored = yield->getOperands().back();
    auto check = [&](Value place, int64_t dim, StringRef what) {
      Value checked =
          arith::SelectOp::create(builder, loc, isStored, place, index(0));
      Value bound = arith::SelectOp::create(builder, loc, isStored,
                                            size(memref, dim), index(1));
      below(checked, bound, (what + " of dimension " + Twine(dim)).str());
    };
    ValueRange indices = yield->getOperands().drop_back();
    for (auto [dim, place] : llvm::enumerate(indices))
      check(place, dim, "index");
    if (!op.getColumn())
      return;
    int64_t columns = op.getValue().getType().getColumns();
    Value last =
        arith::AddIOp::create(builder, loc, op.getColumn(), index(columns - 1));
    // The last index of a column before the first one may wrap.
    check(op.getColumn(), indices.size(), "index");
    check(last, indices.size(), "last index");
  }

  /// A fragment of `lanes` elements of a tile in tensor memory.
  template <typename OpTy> void checkFragment(OpTy op, int64_t lanes) {
    TmemTileType tile = op.getTile().getType();
    int64_t columns = tile.getColumns(), n = 2 * lanes;
    below(op.getColumn(), index(columns - n + 1), "column");
    multipleOf(op.getColumn(), tile.getFragmentUnit(), "column");
    if (tile.isSplitByLanes()) {
      Value inHalf = arith::RemUIOp::create(builder, loc, op.getColumn(),
                                            index(columns / 2));
      below(inHalf, index(columns / 2 - n + 1), "column in half of the tile");
    }
    if (op.getHalf())
      below(op.getHalf(), index(2), "half");
  }

  /// Rows are counted through pages, or through blocks, that lie whole rows
  /// apart. Nothing is said of the distance of a single one.
  void checkRowDistance(Operation *op, TypedValue<CacheTypeInterface> view) {
    if (arePagesWholeRowsApart(view) == true)
      return;
    int64_t row = view.getType().getTokenStride();
    if (row == 1)
      return;
    Value distance = extent(Extent::PageStride, view);
    createRowDistanceCheck(builder, op, distance, extent(Extent::Pages, view),
                           row);
    ++numChecks;
  }

  void checkHead(Value head, CacheTypeInterface cache) {
    below(head, index(cache.getNumHeads()), "head");
  }

  static bool isGiven(std::optional<MutableOperandRange> page) {
    return page && !page->empty();
  }

  /// Whether the op looks up a page: the caller need not have given it.
  static bool readsTable(AccessOpInterface op) {
    if (!op.getAccessedCache().getType().isPaged() || !op.getAccessedToken())
      return true;
    return (op.accessesElements() && !isGiven(op.getPageOperand())) ||
           (op.accessesScales() && !isGiven(op.getScalePageOperand()));
  }

  unsigned numChecks = 0;

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  Value extent(Extent kind, Value cache) {
    return ExtentOp::create(builder, loc, builder.getIndexType(), kind, cache);
  }

  /// The tokens for which a sequence has entries in the table.
  Value tokensOf(Value batch, TypedValue<CacheTypeInterface> cache) {
    // All sequences have the columns of a dense table.
    if (cache.getType().getTable() == TableKind::Dense)
      batch = {};
    return ExtentOp::create(builder, loc, builder.getIndexType(),
                            Extent::Tokens, cache, batch);
  }

  /// Tokens in a page: a constant if the type says so.
  Value pageSize(Value cache) {
    return builder.createOrFold<ExtentOp>(loc, builder.getIndexType(),
                                          Extent::PageSize, cache);
  }

  Value size(Value memref, int64_t dim) {
    return memref::DimOp::create(builder, loc, memref, dim);
  }

  /// A lookup table has a row for each sequence.
  void checkRows(Value sequences, Value table, StringRef name) {
    Value rows = size(table, 0);
    below(sequences, arith::AddIOp::create(builder, loc, rows, index(1)),
          ("number of sequences with a row in '" + name + "'").str());
  }

  /// Gives the name that messages use for a property of a cache, or of the view
  /// of its scales.
  static std::string describe(StringRef what, CacheTypeInterface view) {
    return (what + (isa<ScalesType>(view) ? " of the scales" : "")).str();
  }

  /// The outer strides are no negative numbers, and multiples of the alignment
  /// that accesses count on.
  void checkDistances(TypedValue<MemRefType> tensor, StringRef name,
                      CacheTypeInterface view) {
    MemRefType type = tensor.getType();
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)))
      return;
    int64_t factor = getDistanceUnit(view);
    auto metadata =
        memref::ExtractStridedMetadataOp::create(builder, loc, tensor);
    unsigned tokens = getTokensDim(type);
    for (unsigned dim = 0; dim < tokens; ++dim) {
      if (type.getDimSize(dim) == 1)
        continue;
      std::string what = ("stride " + Twine(dim) + " of '" + name + "'").str();
      Value stride = metadata.getStrides()[dim];
      below(stride, index(std::numeric_limits<int64_t>::max()), what);
      multipleOf(stride, factor, what);
    }
    if (LayoutAttrInterface layout = view.getLayout();
        layout && layout.getRoleStride() && tokens == 3)
      equals(metadata.getStrides()[1], layout.getRoleStride(),
             ("stride 1 of '" + name + "'").str());
    if (view.hasOpenHeadStride())
      multipleOf(metadata.getStrides()[tokens + 1], factor,
                 ("stride " + Twine(tokens + 1) + " of '" + name + "'").str());
    checkDisjoint(metadata, type, name);
  }

  /// No two elements share memory: the stride of a dimension of several is at
  /// least what all dimensions with smaller strides span.
  void checkDisjoint(memref::ExtractStridedMetadataOp tensor, MemRefType type,
                     StringRef name) {
    if (type.getLayout().isIdentity())
      return;
    unsigned rank = type.getRank() - 1;
    SmallVector<Value> reaches;
    for (auto [size, stride] :
         llvm::zip_equal(tensor.getSizes(), tensor.getStrides()))
      reaches.push_back(arith::MulIOp::create(
          builder, loc, stride,
          arith::MaxSIOp::create(
              builder, loc, index(0),
              arith::SubIOp::create(builder, loc, size, index(1)))));
    // The heads first, whose stride may be open.
    for (unsigned i = 0; i < rank; ++i)
      if (unsigned dim = rank - 1 - i; type.getDimSize(dim) != 1)
        checkStride(dim, rank, tensor, reaches, type, name);
  }

  void checkStride(unsigned dim, unsigned rank,
                   memref::ExtractStridedMetadataOp tensor,
                   ArrayRef<Value> reaches, MemRefType type, StringRef name) {
    auto isAtMost = [&](Value lhs, Value rhs) -> Value {
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, lhs,
                                   rhs);
    };
    Value stride = tensor.getStrides()[dim];
    Value span = tensor.getSizes()[rank];
    for (unsigned other = 0; other < rank; ++other)
      if (other != dim && type.getDimSize(other) != 1)
        span = arith::AddIOp::create(
            builder, loc, span,
            arith::SelectOp::create(
                builder, loc, isAtMost(tensor.getStrides()[other], stride),
                reaches[other], index(0)));
    Value isApart =
        arith::OrIOp::create(builder, loc, isAtMost(span, stride),
                             isAtMost(tensor.getSizes()[dim], index(1)));
    Value excess =
        arith::SelectOp::create(builder, loc, isApart, index(0), index(1));
    below(excess, index(1),
          ("stride " + Twine(dim) + " of '" + name +
           "', at which elements overlap,")
              .str());
  }

  void below(Value value, Value bound, StringRef what) {
    CheckOp::create(builder, loc, value, bound,
                    ("'" + name + "' op " + what).str());
    ++numChecks;
  }

  void equals(Value value, int64_t expected, StringRef what) {
    Value difference =
        arith::SubIOp::create(builder, loc, value, index(expected));
    below(difference, index(1),
          (what + " minus " + Twine(expected) + ", which must be 0,").str());
  }

  void multipleOf(Value value, int64_t factor, StringRef what) {
    if (factor == 1)
      return;
    Value rest = arith::RemUIOp::create(builder, loc, value, index(factor));
    below(rest, index(1),
          (what + " modulo " + Twine(factor) + ", which must be 0,").str());
  }

  void checkElement(Value element, int64_t width, CacheTypeInterface view) {
    std::string what = "element";
    if (isa<ScalesType>(view)) {
      below(element, index(view.getHeadSize()), what);
      element = arith::DivUIOp::create(builder, loc, element,
                                       index(view.getElementsPerLane()));
      what = "group of the element";
    }
    // The first of `width` elements: so that none of them is past the head.
    below(element, index(view.getLanesPerHead() - width + 1), what);
    multipleOf(element, width, what);
  }

  /// The tokens of an access, and their pages, exist in `cache`: the op's, or
  /// the view of its scales.
  void checkTokens(AccessOpInterface op, Value token,
                   TypedValue<CacheTypeInterface> cache,
                   std::optional<MutableOperandRange> page) {
    int64_t tokens = op.getAccessedTokens();
    // Only the offset in a page that is given matters.
    if (!isGiven(page))
      checkTokenRange(op, token, tokens, cache);
    if (auto populate = dyn_cast<PopulateOp>(*op))
      checkBase(populate);
    else
      checkStaysInPage(token, tokens, cache);

    Value limitOfPages = extent(Extent::Pages, cache);
    if (isGiven(page)) {
      below((*page)[0].get(), limitOfPages,
            describe("page id", cache.getType()));
      return;
    }
    Value checked = checkPages(op, token, cache, limitOfPages);
    // The op does not look up again what the check has looked up.
    if (page && checked)
      page->assign(checked);
  }

  /// The table has entries for all tokens of the access.
  void checkTokenRange(AccessOpInterface op, Value token, int64_t tokens,
                       TypedValue<CacheTypeInterface> cache) {
    Value limit = tokensOf(op.getAccessedBatch(), cache);
    below(token, limit, describe("token", cache.getType()));
    // Rows of a block that lie past its end are named, but not read.
    bool isNamed = isa<PopulateOp>(*op) && !cache.getType().isPaged();
    if (tokens == 1 || isNamed)
      return;
    Value last = arith::AddIOp::create(builder, loc, token, index(tokens - 1));
    below(last, limit, describe("last token", cache.getType()));
  }

  /// The tokens from a multiple of their number on, which divides the page
  /// size.
  void checkStaysInPage(Value token, int64_t tokens, Value cache) {
    multipleOf(token, tokens, "token");
    auto type = cast<CacheTypeInterface>(cache.getType());
    if (tokens > 1 && type.isPaged() && !type.hasStaticPageSize())
      multipleOf(pageSize(cache), tokens, "page size");
  }

  /// The tokens that a copy reads, and their pages, exist: none if none is
  /// valid.
  void checkCopiedTokens(TileCopyOpInterface op) {
    multipleOf(op.getAccessedToken(), op.getTokenAlignment(), "token");
    Value tokens = index(op.getTile().getType().getRows());
    if (!op.getValid())
      return checkTokensAndPages(op, tokens);
    tokens = arith::MinSIOp::create(builder, loc, tokens, op.getValid());
    Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                        tokens, index(0));
    auto branch = scf::IfOp::create(builder, loc, isAny);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    checkTokensAndPages(op, tokens);
  }

  void checkTokensAndPages(TileCopyOpInterface op, Value tokens) {
    TypedValue<CacheTypeInterface> cache = op.getAccessedCache();
    Value limit = tokensOf(op.getAccessedBatch(), cache);
    Value first = op.getAccessedToken();
    below(first, limit, "token");
    auto at = [&](Value offset) -> Value {
      return arith::AddIOp::create(builder, loc, first, offset);
    };
    Value last = at(arith::SubIOp::create(builder, loc, tokens, index(1)));
    below(last, limit, "last token");
    Value pages = extent(Extent::Pages, cache);
    auto checkPage = [&](Value token) {
      Value page = PageIdOp::create(builder, loc, builder.getIndexType(), cache,
                                    op.getAccessedBatch(), token);
      below(page, pages, "page id");
    };
    checkPage(last);
    if (!cache.getType().isPaged())
      return;
    OpBuilder::InsertionGuard guard(builder);
    auto loop =
        scf::ForOp::create(builder, loc, index(0), tokens, pageSize(cache));
    builder.setInsertionPointToStart(loop.getBody());
    checkPage(at(loop.getInductionVar()));
  }

  /// The base is as aligned as the op says, and rows that are fewer than a
  /// page's lie in one page.
  void checkBase(PopulateOp op) {
    int64_t alignment = op.getKnownBaseAlignment();
    multipleOf(op.getBase(), alignment, "base");
    CacheTypeInterface cache = op.getCache().getType();
    int64_t rows = op.getRows().getType().getRows();
    if (!cache.isPaged() || op.getRows().getType().getNumPages() > 1 ||
        staysInPage(cache.getPageSize(), rows, alignment))
      return;
    Value inPage = arith::RemUIOp::create(builder, loc, op.getBase(),
                                          pageSize(op.getCache()));
    Value last = arith::AddIOp::create(builder, loc, inPage, index(rows - 1));
    below(last, pageSize(op.getCache()), "last row in the base's page");
  }

  /// Whether `rows` rows from a multiple of `alignment` on surely lie in a
  /// page.
  static bool staysInPage(int64_t pageSize, int64_t rows, int64_t alignment) {
    if (ShapedType::isDynamic(pageSize))
      return rows == 1;
    return alignment % pageSize == 0 ||
           (pageSize % rows == 0 && alignment % rows == 0);
  }

  /// Looks up and checks the page of every token that the op accesses. Returns
  /// the page if there is one for all.
  Value checkPages(AccessOpInterface op, Value token,
                   TypedValue<CacheTypeInterface> cache, Value limit) {
    CacheTypeInterface type = cache.getType();
    int64_t tokens = op.getAccessedTokens();
    auto checkPage = [&](Value token) -> Value {
      Value page = PageIdOp::create(builder, loc, builder.getIndexType(), cache,
                                    op.getAccessedBatch(), token);
      below(page, limit, describe("page id", cache.getType()));
      return page;
    };
    // Tokens of pages whose size is not known yet lie in one of them.
    if (!type.hasStaticPageSize() || tokens <= type.getPageSize())
      return checkPage(token);

    OpBuilder::InsertionGuard guard(builder);
    auto loop = scf::ForOp::create(builder, loc, index(0), index(tokens),
                                   pageSize(cache));
    builder.setInsertionPointToStart(loop.getBody());
    checkPage(
        arith::AddIOp::create(builder, loc, token, loop.getInductionVar()));
    return {};
  }

  OpBuilder &builder;
  Location loc;
  StringRef name;
};

} // namespace

/// The view whose rows the op counts through all pages; null if it doesn't.
static TypedValue<CacheTypeInterface> getViewOfCountedRows(OpBuilder &builder,
                                                           Operation *op) {
  if (isa<NumKVRowsOp, RowIndexOp, PopulateOp>(op))
    return cast<TypedValue<CacheTypeInterface>>(op->getOperand(0));
  // In a continuous cache an id is the row itself.
  if (auto row = dyn_cast<TMARowOp>(op);
      row && row.getCache().getType().isPaged())
    return row.getCache();
  if (auto copy = dyn_cast<TileCopyOpInterface>(op);
      copy && copy.getRowIds() && !copy.getViewType().isPaged())
    return copy.getAccessedCache();
  if (isa<NumScaleRowsOp, ScaleRowIndexOp>(op))
    return getScales(builder, op->getLoc(),
                     cast<TypedValue<CacheTypeInterface>>(op->getOperand(0)));
  return {};
}

unsigned kvcache::insertRuntimeChecks(OpBuilder &builder, Location loc,
                                      Operation *op) {
  Checker checker(builder, loc, op);
  if (TypedValue<CacheTypeInterface> view = getViewOfCountedRows(builder, op))
    checker.checkRowDistance(op, view);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](AccessOpInterface op) { checker.checkAccess(op); })
      .Case([&](BundleOpInterface op) { checker.checkBundle(op); })
      .Case([&](LayerViewOpInterface op) {
        checker.checkView(op.getCollection(), op.getLayer());
      })
      .Case([&](GetRowOp op) {
        checker.checkOffset(op.getOffset(), op.getRows().getType());
      })
      .Case([&](TMARowOp op) {
        checker.checkEncodedRow(op.getEncoded(), op.getCache());
      })
      .Case([&](ColIndexOp op) {
        checker.checkHead(op.getHead(), op.getCache().getType());
      })
      .Case([&](TileLoadOp op) {
        checker.checkTile(op, getNumLanes(op.getType()));
      })
      .Case([&](TileStoreOp op) {
        checker.checkTile(op, getNumLanes(op.getValue().getType()));
      })
      .Case([&](TileOffsetOp op) { checker.checkTile(op, /*lanes=*/1); })
      .Case<MmaOp, TmemMmaOp, FragmentMmaOp>(
          [&](auto op) { checker.checkMatrices(op.getParts()); })
      .Case<FragmentLoadOp, FragmentStoreOp>(
          [&](auto op) { checker.checkMatrices(op.getPart()); })
      .Case([&](StoreRowsOp op) { checker.checkRows(op); })
      .Case([&](TmemLoadOp op) {
        checker.checkFragment(op, getNumLanes(op.getResult().getType()));
      })
      .Case([&](TmemStoreOp op) {
        checker.checkFragment(op, getNumLanes(op.getValue().getType()));
      });
  return checker.numChecks;
}
