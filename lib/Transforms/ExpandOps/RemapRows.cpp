//===- RemapRows.cpp - Expand kvcache.remap_rows --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Builders/Heads.h"
#include "ExpandOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::expand(RemapRowsOp op, const Frame &frame) {
  OpBuilder &builder = frame.builder;
  Value rows = frame.dim(op.getTokens(), 0);
  Value columns = frame.dim(op.getTokens(), 1);
  frame.checkSize("rows", {"tokens", op.getTokens()}, {"ids", op.getIds()});
  frame.checkSize("columns", {"tokens", op.getTokens(), 1},
                  {"ids", op.getIds(), 1});
  frame.forBlocks(
      {rows, columns}, {1, frame.blockThreads},
      [&](ValueRange block) {
        frame.forThreads({frame.blockThreads}, [&](ValueRange thread) {
          Value row = block[0], column = frame.add(block[1], thread[0]);
          frame.runIf(frame.below(column, columns), [&] {
            Value token = memref::LoadOp::create(
                builder, frame.loc, op.getTokens(), ValueRange{row, column});
            Value zero = frame.i32(0);
            Value isToken = arith::CmpIOp::create(
                builder, frame.loc, arith::CmpIPredicate::sge, token, zero);
            Value isUsed =
                frame.below(row, frame.countRows(op.getRowOffsets()));
            isUsed = arith::AndIOp::create(builder, frame.loc, isUsed, isToken);
            Value id = frame.selectIf(
                isUsed,
                [&] {
                  Value batch = frame.findSequence(op.getRowOffsets(), row);
                  return frame.toI32(encodeRow(frame, op.getCache(), batch,
                                               frame.fromI32(token), "tokens"));
                },
                [&] { return token; });
            memref::StoreOp::create(builder, frame.loc, id, op.getIds(),
                                    ValueRange{row, column});
          });
        });
      },
      /*alongX=*/0);
}
