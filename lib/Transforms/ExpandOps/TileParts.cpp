//===- TileParts.cpp - Parts of rows that tiles compute -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileParts.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::forRuns(
    const Frame &frame, const TileLane &lane, int64_t r,
    function_ref<void(Value d, ArrayRef<int64_t> sums)> body) {
  const LaneLayout &layout = lane.layout;
  for (int64_t run = 0; run < layout.countRuns(lane.size); ++run) {
    SmallVector<int64_t, 2> sums;
    for (int64_t e = 0; e < layout.getRunSize(); ++e)
      sums.push_back(2 * layout.countRows() + layout.getElement(r, run, e));
    body(frame.add(lane.first, frame.index(layout.getColumn(run))), sums);
  }
}

Value kvcache::joinRun(const Frame &frame, const TileState &state,
                       ArrayRef<int64_t> sums) {
  auto values = llvm::map_to_vector(sums, [&](int64_t i) { return state[i]; });
  auto type = VectorType::get(static_cast<int64_t>(values.size()),
                              frame.builder.getF32Type());
  return vector::FromElementsOp::create(frame.builder, frame.loc, type, values);
}

// Rows that are not real repeat others.
void kvcache::storePart(const Frame &frame, const Workspace &workspace,
                        const TileLane &lane, Value firstSlot, Value part,
                        const TileState &state) {
  for (auto [r, row] : llvm::enumerate(lane.rows))
    frame.runIf(row.isReal, [&, r = r, &row = row] {
      Value number = workspace.getPart(frame.add(firstSlot, row.i), part);
      forRuns(frame, lane, r, [&](Value d, ArrayRef<int64_t> sums) {
        workspace.storeSums(joinRun(frame, state, sums), number, row.queryHead,
                            d);
      });
      frame.runIf(frame.equal(lane.first, frame.index(0)), [&] {
        workspace.storeState(state[r], state[lane.rows.size() + r], number,
                             row.queryHead);
      });
    });
}
