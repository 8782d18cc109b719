//===- CopyPages.cpp - Expand kvcache.copy_pages --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandOps.h"
#include "Heads.h"

#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ViewOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Copies the share of a thread of one token, of keys and values.
static void copyToken(CopyPagesOp op, const Frame &frame, Value pair,
                      Value layer, Value token, ValueRange thread,
                      const Split &split, int64_t heads) {
  OpBuilder &builder = frame.builder;
  auto type = op.getCollection().getType();
  Value from = frame.loadSigned(op.getPairs(), {pair, frame.index(0)});
  Value to = frame.loadSigned(op.getPairs(), {pair, frame.index(1)});
  Value isPair = frame.less(
      frame.index(-1),
      arith::MinSIOp::create(builder, frame.loc, from, to).getResult());
  frame.runIf(isPair, [&] {
    SmallVector<Value> views;
    for (Role role : {Role::Key, Role::Value})
      if (role == Role::Key || !type.isMLA())
        views.push_back(PagedViewOp::create(builder, frame.loc, role,
                                            op.getCollection(), layer));
    frame.forEach(thread[0], type.getNumHeads(), heads, [&](Value head) {
      SmallVector<std::function<void()>> stores;
      for (Value view : views) {
        Place source{frame.index(0), token, from},
            target{frame.index(0), token, to};
        stores.push_back(loadBits(
            frame, {view, view, source, target, head, head}, thread[1], split));
      }
      for (const auto &store : stores)
        store();
    });
  });
}

void kvcache::expand(CopyPagesOp op, const Frame &frame) {
  OpBuilder &builder = frame.builder;
  auto type = op.getCollection().getType();
  Split split = splitForCopy(frame, type);
  int64_t heads = split.getHeadThreads(type.getNumHeads());
  Value layers = ExtentOp::create(builder, frame.loc, builder.getIndexType(),
                                  Extent::Layers, op.getCollection());
  Value view = PagedViewOp::create(builder, frame.loc, Role::Key,
                                   op.getCollection(), frame.index(0));
  Value pageSize = frame.getPageSize(view);
  Value pairs = frame.dim(op.getPairs(), 0);
  frame.forBlocks({pairs, layers, pageSize}, {1, 1, 1}, [&](ValueRange block) {
    frame.forThreads({heads, split.lanes}, [&](ValueRange thread) {
      copyToken(op, frame, block[0], block[1], block[2], thread, split, heads);
    });
  });
}
