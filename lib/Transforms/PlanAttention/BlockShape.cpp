//===- BlockShape.cpp - Query rows of a block -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockShape.h"

#include "../Builders/Frame.h"
#include "AttentionSizes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

BlockShape::BlockShape(AttentionOp op, int64_t rows) {
  AttentionSizes sizes(op);
  packed = getDivisorUpTo(sizes.group, rows);
  // A sparse row sees tokens of its own.
  perBlock = op.getRows() ? 1 : rows / packed;
  shares = sizes.group / packed;
  across = sizes.heads * shares;
  splitTiles = llvm::divideCeil(op.getSplitOrDefault().getRows(), perBlock);
}
