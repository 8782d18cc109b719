//===- AttentionCPU.cpp - Expand kvcache.attention for the CPU ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCPU.h"

#include "FewRows.h"
#include "ManyRows.h"

#include "kvcache/Support/Loops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

using namespace mlir;
using namespace mlir::kvcache;

/// Keeps LLVM from unrolling the loops that `build` adds. Their steps have many
/// vectors already, so that more take time to compile, and none to run.
static void buildWithoutUnrolling(OpBuilder &builder,
                                  function_ref<void()> build) {
  Block *block = builder.getInsertionBlock();
  int64_t before = std::distance(block->begin(), builder.getInsertionPoint());
  build();
  for (Operation &added : llvm::make_range(std::next(block->begin(), before),
                                           builder.getInsertionPoint()))
    added.walk([](scf::ForOp loop) { disableUnrolling(loop); });
}

// A sequence's own rows choose the loops, so that a row has the same bits alone
// and in any batch. For few rows, a thread computes some heads together; many
// are several work items for each head.
void kvcache::expandForCPU(AttentionOp op, const Frame &frame) {
  HostAttention attention(op, frame);
  int64_t group = attention.sizes.group, most = FewRows::getMost(attention);
  // A sparse row has one token.
  bool mayBeFew = group <= most, mayBeMany = !op.getRows() || !mayBeFew;
  std::optional<FewRows> few;
  std::optional<ManyRows> many;
  if (mayBeFew)
    few.emplace(attention);
  if (mayBeMany)
    many.emplace(attention);
  auto compute = [&](const QueryRows &rows, Value head, Value share) {
    Value zero = frame.index(0);
    Value count = frame.mul(rows.count, group);
    auto both = [&](Value lhs, Value rhs) -> Value {
      return arith::AndIOp::create(frame.builder, frame.loc, lhs, rhs);
    };
    auto computeFew = [&] {
      Value isFirst = both(frame.equal(frame.rem(head, few->getHeads()), zero),
                           frame.equal(share, zero));
      frame.runIf(both(isFirst, frame.less(zero, count)), [&] {
        auto build = [&] { few->compute(rows, head, count); };
        // Steps of dot products are shorter.
        if (attention.mma == HostMma::Dot)
          build();
        else
          buildWithoutUnrolling(frame.builder, build);
      });
    };
    auto computeMany = [&] {
      buildWithoutUnrolling(frame.builder,
                            [&] { many->compute(rows, head, count, share); });
    };
    if (!mayBeFew)
      computeMany();
    else if (!mayBeMany)
      computeFew();
    else
      frame.runIf(frame.below(count, frame.index(most + 1)), computeFew,
                  computeMany);
  };
  Value blocks = op.getRows() ? frame.countRows(op.getRowOffsets())
                              : frame.countSequences(op.getRowOffsets());
  Value heads = frame.index(attention.sizes.heads);
  Value shares = frame.index(mayBeMany ? kRowShares : 1);
  auto body = [&](ValueRange id) {
    compute(op.getRows() ? getSparseRow(frame, op, id[0])
                         : loadRowsAndTokens(frame, op, id[0]),
            id[1], id[2]);
  };
  // LLVM would look at all of the code for each of these loops.
  disableUnrolling(frame.forBlocks({blocks, heads, shares}, {1, 1, 1}, body));
}
