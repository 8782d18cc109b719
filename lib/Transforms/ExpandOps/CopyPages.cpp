//===- CopyPages.cpp - Expand kvcache.copy_pages --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Builders/Heads.h"
#include "../Builders/ScaleRow.h"
#include "ExpandOps.h"

#include "kvcache/IR/AccessOps.h"
#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"
#include "kvcache/IR/ViewOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Whether the elements, or scales, of a page are one piece of memory, for a
/// role of a layer.
bool arePacked(CacheTypeInterface view) {
  int64_t head = view.getStoredHeadSize(), heads = view.getNumHeads();
  if (view.getInterleave() != 1)
    return false;
  if (view.getHeadStride() == head)
    return view.getTokenStride() == heads * head;
  return view.hasStaticPageSize() && view.getTokenStride() == head &&
         view.getHeadStride() == view.getRowsPerPage() * head;
}

/// The stored elements, or scales, of a page.
int64_t countStored(CacheTypeInterface view) {
  return view.getRowsPerPage() * view.getNumHeads() * view.getStoredHeadSize();
}

/// A page is copied by a block for each token, and if its scales are one piece
/// of memory, by more blocks for those: neighbouring threads then copy
/// neighbouring scales, of several tokens. On a CPU, pieces of memory are
/// copied as a whole.
class PageCopier {
public:
  PageCopier(CopyPagesOp op, const Frame &frame)
      : op(op), frame(frame), builder(frame.builder), loc(frame.loc),
        type(op.getCollection().getType()), split(splitForCopy(frame, type)),
        headThreads(
            split.getHeadThreads(type.getNumHeads(), frame.blockThreads)) {
    CacheTypeInterface scales;
    if (type.isQuantized())
      scales = getViewType(type, /*isScales=*/true);
    if (scales && arePacked(scales))
      planScales(scales);
    copiesPages = !frame.isGPU && type.hasStaticPageSize() &&
                  (!scales || width) &&
                  arePacked(getViewType(type, /*isScales=*/false));
  }

  void expand() {
    Value layers = ExtentOp::create(builder, loc, builder.getIndexType(),
                                    Extent::Layers, op.getCollection());
    Value pairs = frame.dim(op.getPairs(), 0);
    if (copiesPages) {
      frame.forBlocks({pairs, layers}, {1, 1}, [&](ValueRange block) {
        forPair(block[0],
                [&](Value from, Value to) { copyPage(from, to, block[1]); });
      });
      return;
    }
    Value view = createView(Role::Key, frame.index(0));
    Value pageSize = frame.getPageSize(view);
    Value blocks = pageSize;
    if (width)
      blocks = frame.add(pageSize, countScaleBlocks(view));
    frame.forBlocks(
        {pairs, layers, blocks}, {1, 1, 1},
        [&](ValueRange block) {
          frame.forThreads({headThreads, split.lanes}, [&](ValueRange thread) {
            copyShare(block, pageSize, thread);
          });
        },
        /*alongX=*/0);
  }

private:
  /// Scales are accessed by 16 bytes where their strides allow it; on a CPU, by
  /// a vector register.
  void planScales(CacheTypeInterface scales) {
    constexpr uint64_t registerBytes = 64;
    int64_t bytes = scales.getElementType().getIntOrFloatBitWidth() / 8;
    uint64_t row = scales.getNumHeads() * scales.getStoredHeadSize() * bytes;
    alignment = bytes;
    uint64_t most = registerBytes;
    if (frame.isGPU)
      alignment = most = getInPageAlignment(
          scales, getPageAlignment(op.getCollection(), /*isScales=*/true,
                                   kPromisedAlignment));
    width = llvm::MinAlign(most, row) / bytes;
    // Whole warps, so that their accesses begin with a sector.
    constexpr int64_t warp = 32;
    scaleThreads = headThreads * split.lanes;
    if (scaleThreads > warp)
      scaleThreads -= scaleThreads % warp;
  }

  Value createView(Role role, Value layer) {
    return PagedViewOp::create(builder, loc, role, op.getCollection(), layer);
  }

  SmallVector<Value> createViews(Value layer) {
    SmallVector<Value> views = {createView(Role::Key, layer)};
    if (!type.isMLA())
      views.push_back(createView(Role::Value, layer));
    return views;
  }

  /// The scales of a view: [pages, scales of a page].
  Value getScales(Value view) {
    int64_t dynamic = ShapedType::kDynamic;
    Value base = ScalesBaseOp::create(builder, loc, view);
    auto memref = cast<MemRefType>(base.getType());
    auto metadata =
        memref::ExtractStridedMetadataOp::create(builder, loc, base);
    auto flat = MemRefType::get(
        {dynamic, dynamic}, memref.getElementType(),
        StridedLayoutAttr::get(builder.getContext(), dynamic, {dynamic, 1}));
    SmallVector<OpFoldResult> sizes = {metadata.getSizes()[0],
                                       countScales(base)},
                              strides = {metadata.getStrides()[0],
                                         builder.getIndexAttr(1)};
    return memref::ReinterpretCastOp::create(builder, loc, flat, base,
                                             OpFoldResult(metadata.getOffset()),
                                             sizes, strides);
  }

  Value countScales(Value base) {
    ArrayRef<int64_t> shape = cast<MemRefType>(base.getType()).getShape();
    return frame.mul(frame.dim(base, 1), shape[2] * shape[3]);
  }

  Value countScaleBlocks(Value view) {
    Value base = ScalesBaseOp::create(builder, loc, view);
    int64_t share = width * scaleThreads;
    return frame.div(frame.add(countScales(base), frame.index(share - 1)),
                     share);
  }

  /// Runs `body` with the pages of a pair that has no negative one.
  void forPair(Value pair, function_ref<void(Value from, Value to)> body) {
    Value from = frame.loadSigned(op.getPairs(), {pair, frame.index(0)});
    Value to = frame.loadSigned(op.getPairs(), {pair, frame.index(1)});
    Value isPair =
        frame.less(frame.index(-1),
                   arith::MinSIOp::create(builder, loc, from, to).getResult());
    frame.runIf(isPair, [&] { body(from, to); });
  }

  void copyShare(ValueRange block, Value pageSize, ValueRange thread) {
    Value layer = block[1], share = block[2];
    forPair(block[0], [&](Value from, Value to) {
      if (!width)
        return copyToken(from, to, layer, share, thread);
      Value isToken = frame.below(share, pageSize);
      auto branch = scf::IfOp::create(builder, loc, isToken,
                                      /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(branch.thenYield());
      copyToken(from, to, layer, share, thread);
      builder.setInsertionPoint(branch.elseYield());
      copyScales(from, to, layer, frame.sub(share, pageSize), thread);
    });
  }

  /// The type of a piece of memory of a view.
  MemRefType getPieceType(CacheTypeInterface view) {
    auto layout = StridedLayoutAttr::get(builder.getContext(),
                                         ShapedType::kDynamic, /*strides=*/1);
    return MemRefType::get(countStored(view), view.getStorageType(), layout);
  }

  /// The elements of a page.
  Value getElements(Value view, Value page) {
    auto viewType = cast<CacheTypeInterface>(view.getType());
    Value first =
        getStoredRow(frame, view, {frame.index(0), frame.index(0), page},
                     frame.index(0), viewType.getHeadSize());
    auto metadata =
        memref::ExtractStridedMetadataOp::create(builder, loc, first);
    MemRefType piece = getPieceType(viewType);
    SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(
                                  piece.getDimSize(0))},
                              strides = {builder.getIndexAttr(1)};
    return memref::ReinterpretCastOp::create(builder, loc, piece, first,
                                             OpFoldResult(metadata.getOffset()),
                                             sizes, strides);
  }

  /// The scales of a page, of those of all pages.
  Value getScales(Value all, Value page) {
    MemRefType piece = getPieceType(getViewType(type, /*isScales=*/true));
    OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
    SmallVector<OpFoldResult> offsets = {page, zero}, strides = {one, one},
                              sizes = {one, builder.getIndexAttr(
                                                piece.getDimSize(0))};
    return memref::SubViewOp::create(builder, loc, piece, all, offsets, sizes,
                                     strides);
  }

  /// Copies a page of keys and values.
  void copyPage(Value from, Value to, Value layer) {
    for (Value view : createViews(layer)) {
      memref::CopyOp::create(builder, loc, getElements(view, from),
                             getElements(view, to));
      if (!type.isQuantized())
        continue;
      Value scales = getScales(view);
      for (Value page : {from, to})
        frame.checkIndex(page, "page id", "scales", scales, 0);
      memref::CopyOp::create(builder, loc, getScales(scales, from),
                             getScales(scales, to));
    }
  }

  /// Copies a thread's share of a token, of keys and values.
  void copyToken(Value from, Value to, Value layer, Value token,
                 ValueRange thread) {
    SmallVector<Value> views = createViews(layer);
    Place source{frame.index(0), token, from},
        target{frame.index(0), token, to};
    bool copiesRows = frame.isGPU && !width && hasScaleRows(type);
    SmallVector<std::function<void()>> storesOfScales;
    if (copiesRows)
      for (Value view : views)
        storesOfScales.push_back(loadScaleRow(
            frame, {view, view, source, target, frame.index(0), frame.index(0)},
            type.getNumHeads(), frame.getThreadId(thread, split.lanes),
            headThreads * split.lanes));
    frame.forEach(thread[0], type.getNumHeads(), headThreads, [&](Value head) {
      SmallVector<std::function<void()>> stores;
      for (Value view : views)
        stores.push_back(loadBits(
            frame, {view, view, source, target, head, head}, thread[1], split,
            /*withScales=*/!width && !copiesRows));
      for (const auto &store : stores)
        store();
    });
    for (const auto &store : storesOfScales)
      store();
  }

  /// Copies what a thread has of a share of the scales of a page, of keys and
  /// values.
  void copyScales(Value from, Value to, Value layer, Value share,
                  ValueRange thread) {
    Value id = frame.getThreadId(thread, split.lanes);
    SmallVector<Value> scales;
    for (Value view : createViews(layer))
      scales.push_back(getScales(view));
    for (Value memref : scales)
      for (Value page : {from, to})
        frame.checkIndex(page, "page id", "scales", memref, 0);
    Value first =
        frame.mul(frame.add(frame.mul(share, scaleThreads), id), width);
    Value isInside = frame.below(first, frame.dim(scales.front(), 1));
    if (scaleThreads < headThreads * split.lanes)
      isInside = arith::AndIOp::create(
          builder, loc, isInside, frame.below(id, frame.index(scaleThreads)));
    frame.runIf(isInside, [&] {
      SmallVector<Value> loaded;
      llvm::MaybeAlign align(alignment);
      for (Value memref : scales)
        loaded.push_back(vector::LoadOp::create(
            builder, loc,
            VectorType::get(width, getElementTypeOrSelf(memref.getType())),
            memref, ValueRange{from, first}, /*nontemporal=*/false, align));
      for (auto [memref, values] : llvm::zip_equal(scales, loaded))
        vector::StoreOp::create(builder, loc, values, memref,
                                ValueRange{to, first}, /*nontemporal=*/false,
                                align);
    });
  }

  CopyPagesOp op;
  Frame frame;
  OpBuilder &builder;
  Location loc;
  PagedCollectionType type;
  Split split;
  int64_t headThreads;
  /// Scales of an access, its alignment, and the threads of a block that have
  /// one. Without a width, blocks of tokens copy the scales.
  int64_t width = 0, alignment = 0, scaleThreads = 0;
  /// Whether elements and scales of a page are copied as a whole.
  bool copiesPages = false;
};

} // namespace

void kvcache::expand(CopyPagesOp op, const Frame &frame) {
  PageCopier(op, frame).expand();
}
