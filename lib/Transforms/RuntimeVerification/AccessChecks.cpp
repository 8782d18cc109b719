//===- AccessChecks.cpp - Checks of the elements that an op accesses ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/PageTableOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

static bool isGiven(std::optional<MutableOperandRange> page) {
  return page && !page->empty();
}

/// Returns whether the op looks up a page: the caller need not have given it.
static bool readsTable(AccessOpInterface op) {
  if (!op.getAccessedCache().getType().isPaged() || !op.getAccessedToken())
    return true;
  return (op.accessesElements() && !isGiven(op.getPageOperand())) ||
         (op.accessesScales() && !isGiven(op.getScalePageOperand()));
}

/// Returns the name that messages use for a property of a cache, or of the view
/// of its scales.
static std::string describe(StringRef what, CacheTypeInterface view) {
  return (what + (isa<ScalesType>(view) ? " of the scales" : "")).str();
}

static void checkElement(CheckBuilder &c, Value element, int64_t width,
                         CacheTypeInterface view) {
  std::string what = "element";
  if (isa<ScalesType>(view)) {
    c.checkBelow(element, c.index(view.getHeadSize()), what);
    element = arith::DivUIOp::create(c.b, element,
                                     c.index(view.getElementsPerLane()));
    what = "group of the element";
  }
  // The first of `width` elements: so that none of them is past the head.
  c.checkBelow(element, c.index(view.getLanesPerHead() - width + 1), what);
  c.checkMultiple(element, width, what);
}

/// Checks that the table has entries for all tokens of the access.
static void checkTokenRange(CheckBuilder &c, AccessOpInterface op, Value token,
                            int64_t tokens,
                            TypedValue<CacheTypeInterface> cache) {
  Value limit = c.countTokens(op.getAccessedBatch(), cache);
  c.checkBelow(token, limit, describe("token", cache.getType()));
  // Rows of a block that lie past its end are named, but not read.
  bool isNamed = isa<PopulateOp>(*op) && !cache.getType().isPaged();
  if (tokens == 1 || isNamed)
    return;
  Value last = arith::AddIOp::create(c.b, token, c.index(tokens - 1));
  c.checkBelow(last, limit, describe("last token", cache.getType()));
}

/// Returns whether `rows` rows from a multiple of `alignment` on surely lie in
/// a page.
static bool staysInPage(int64_t pageSize, int64_t rows, int64_t alignment) {
  if (ShapedType::isDynamic(pageSize))
    return rows == 1;
  return alignment % pageSize == 0 ||
         (pageSize % rows == 0 && alignment % rows == 0);
}

/// Checks that the base is as aligned as the op says, and that rows that are
/// fewer than a page's lie in one page.
static void checkBase(CheckBuilder &c, PopulateOp op) {
  int64_t alignment = op.getKnownBaseAlignment();
  c.checkMultiple(op.getBase(), alignment, "base");
  CacheTypeInterface cache = op.getCache().getType();
  int64_t rows = op.getRows().getType().getRows();
  if (!cache.isPaged() || op.getRows().getType().getNumPages() > 1 ||
      staysInPage(cache.getPageSize(), rows, alignment))
    return;
  Value inPage =
      arith::RemUIOp::create(c.b, op.getBase(), c.getPageSize(op.getCache()));
  Value last = arith::AddIOp::create(c.b, inPage, c.index(rows - 1));
  c.checkBelow(last, c.getPageSize(op.getCache()),
               "last row in the base's page");
}

/// Checks that the tokens begin at a multiple of their number, which divides
/// the page size.
static void checkStaysInPage(CheckBuilder &c, Value token, int64_t tokens,
                             Value cache) {
  c.checkMultiple(token, tokens, "token");
  auto type = cast<CacheTypeInterface>(cache.getType());
  if (tokens > 1 && type.isPaged() && !type.hasStaticPageSize())
    c.checkMultiple(c.getPageSize(cache), tokens, "page size");
}

/// Looks up and checks the page of every token that the op accesses. Returns
/// the page if there is one for all.
static Value checkPages(CheckBuilder &c, AccessOpInterface op, Value token,
                        TypedValue<CacheTypeInterface> cache, Value limit) {
  CacheTypeInterface type = cache.getType();
  int64_t tokens = op.getAccessedTokens();
  auto checkPage = [&](Value token) -> Value {
    Value page = PageIdOp::create(c.b, c.b.getIndexType(), cache,
                                  op.getAccessedBatch(), token);
    c.checkBelow(page, limit, describe("page id", cache.getType()));
    return page;
  };
  // Tokens of pages whose size is not known yet lie in one of them.
  if (!type.hasStaticPageSize() || tokens <= type.getPageSize())
    return checkPage(token);

  OpBuilder::InsertionGuard guard(c.b);
  auto loop = scf::ForOp::create(c.b, c.index(0), c.index(tokens),
                                 c.getPageSize(cache));
  c.b.setInsertionPointToStart(loop.getBody());
  checkPage(arith::AddIOp::create(c.b, token, loop.getInductionVar()));
  return {};
}

/// Checks that the tokens of an access, and their pages, exist in `cache`: the
/// op's, or the view of its scales.
static void checkTokens(CheckBuilder &c, AccessOpInterface op, Value token,
                        TypedValue<CacheTypeInterface> cache,
                        std::optional<MutableOperandRange> page) {
  int64_t tokens = op.getAccessedTokens();
  // Only the offset in a page that is given matters.
  if (!isGiven(page))
    checkTokenRange(c, op, token, tokens, cache);
  if (auto populate = dyn_cast<PopulateOp>(*op))
    checkBase(c, populate);
  else
    checkStaysInPage(c, token, tokens, cache);

  Value limitOfPages = c.extent(Extent::Pages, cache);
  if (isGiven(page)) {
    c.checkBelow((*page)[0].get(), limitOfPages,
                 describe("page id", cache.getType()));
    return;
  }
  Value checked = checkPages(c, op, token, cache, limitOfPages);
  // The op does not look up again what the check has looked up.
  if (page && checked)
    page->assign(checked);
}

static void checkTokensAndPages(CheckBuilder &c, TileCopyOpInterface op,
                                Value tokens) {
  TypedValue<CacheTypeInterface> cache = op.getAccessedCache();
  Value limit = c.countTokens(op.getAccessedBatch(), cache);
  Value first = op.getAccessedToken();
  c.checkBelow(first, limit, "token");
  auto at = [&](Value offset) -> Value {
    return arith::AddIOp::create(c.b, first, offset);
  };
  Value last = at(arith::SubIOp::create(c.b, tokens, c.index(1)));
  c.checkBelow(last, limit, "last token");
  Value pages = c.extent(Extent::Pages, cache);
  auto checkPage = [&](Value token) {
    Value page = PageIdOp::create(c.b, c.b.getIndexType(), cache,
                                  op.getAccessedBatch(), token);
    c.checkBelow(page, pages, "page id");
  };
  checkPage(last);
  if (!cache.getType().isPaged())
    return;
  OpBuilder::InsertionGuard guard(c.b);
  auto loop = scf::ForOp::create(c.b, c.index(0), tokens, c.getPageSize(cache));
  c.b.setInsertionPointToStart(loop.getBody());
  checkPage(at(loop.getInductionVar()));
}

/// Checks that the tokens that a copy reads, and their pages, exist: none if
/// none is valid.
static void checkCopiedTokens(CheckBuilder &c, TileCopyOpInterface op) {
  c.checkMultiple(op.getAccessedToken(), op.getTokenAlignment(), "token");
  Value tokens = c.index(op.getTile().getType().getRows());
  if (!op.getValid())
    return checkTokensAndPages(c, op, tokens);
  tokens = arith::MinSIOp::create(c.b, tokens, op.getValid());
  Value isAny =
      arith::CmpIOp::create(c.b, arith::CmpIPredicate::sgt, tokens, c.index(0));
  auto branch = scf::IfOp::create(c.b, isAny);
  OpBuilder::InsertionGuard guard(c.b);
  c.b.setInsertionPointToStart(branch.thenBlock());
  checkTokensAndPages(c, op, tokens);
}

void kvcache::checkAccess(CheckBuilder &c, AccessOpInterface op) {
  TypedValue<CacheTypeInterface> cache = op.getAccessedCache();
  if (Value batch = op.getAccessedBatch(); batch && readsTable(op))
    c.checkBelow(batch, c.extent(Extent::Batch, cache), "sequence");
  if (Value head = op.getAccessedHead())
    c.checkBelow(head, c.index(cache.getType().getNumHeads()), "head");
  TypedValue<CacheTypeInterface> scales;
  if (op.accessesScales())
    scales = c.getScales(cache);
  // Scales of elements that exist, exist.
  if (Value element = op.getAccessedElement())
    checkElement(c, element, op.getAccessedWidth(),
                 (op.accessesElements() ? cache : scales).getType());
  if (auto copy = dyn_cast<TileCopyOpInterface>(*op); copy && !copy.getRowIds())
    return checkCopiedTokens(c, copy);
  Value token = op.getAccessedToken();
  if (token && op.accessesElements())
    checkTokens(c, op, token, cache, op.getPageOperand());
  if (token && op.accessesScales())
    checkTokens(c, op, token, scales, op.getScalePageOperand());
}
