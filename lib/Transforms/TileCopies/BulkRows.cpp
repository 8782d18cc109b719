//===- BulkRows.cpp - Bulk copies of single rows --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkRows.h"
#include "Source.h"

#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/CachePolicy.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Bulk copies of rows, a lane for each.
class BulkRows {
public:
  BulkRows(const IndexBuilder &b, TileCopyOpInterface copy, Threads lanes,
           Barrier barrier)
      : b(b), source(b, copy), layout(source.getLayout()), lanes(lanes),
        barrier(
            getBarrierPointer(b.builder, b.loc, barrier.group, barrier.index)),
        policy(createCachePolicy(b.builder, b.loc, copy.getL2HintAttr())),
        memory(TileMemoryOp::create(b.builder, b.loc,
                                    source.getTile().getType().getMemoryType(),
                                    source.getTile())) {}

  void emit() {
    // Lanes that stay together can help each other.
    bool isWholeWarp =
        getConstantIntValue(lanes.count) == BlockBuilder::kWarp &&
        layout.rows % BlockBuilder::kWarp == 0;
    b.loop(lanes.thread, b.index(layout.rows), lanes.count, [&](Value tileRow) {
      SourceRow row = source.getRow(tileRow);
      b.runIf(row.isValid, [&] { copyRow(row, tileRow); });
      Value isMissing = arith::XOrIOp::create(
          b.builder, b.loc, row.isValid,
          arith::ConstantIntOp::create(b.builder, b.loc, /*value=*/1,
                                       /*width=*/1));
      if (isWholeWarp)
        return zeroTogether(isMissing, b.sub(tileRow, lanes.thread));
      b.runIf(isMissing, [&] { zeroRow(tileRow, {b.index(0), b.index(1)}); });
    });
    // A later copy to the same place must come after the zeros.
    emitProxyFence(b);
  }

private:
  int64_t getRowBytes() const { return layout.columns * layout.elementBytes; }

  void copyRow(const SourceRow &row, Value tileRow) {
    // The row may start beside a multiple of its columns, but not of 16 bytes.
    Value from = getGlobalPointer(
        b.builder, b.loc,
        source.getMemory(row, b.index(0), 16 / layout.elementBytes, row.page));
    Value to = getSharedPointer(b.builder, b.loc, memory,
                                b.mul(tileRow, b.index(getRowBytes())));
    // A bulk copy names shared memory as one of the cluster does.
    auto clusterPointer = LLVM::LLVMPointerType::get(
        b.builder.getContext(),
        static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
    to = LLVM::AddrSpaceCastOp::create(b.builder, b.loc, clusterPointer, to);
    Value bytes = b.i32(getRowBytes());
    NVVM::MBarrierExpectTxOp::create(b.builder, b.loc, barrier, bytes);
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
        b.builder, b.loc, to, from, barrier, bytes,
        /*multicastMask=*/Value(), policy);
  }

  /// Zeroes the rows of the lanes that miss one, from `first` on. All lanes
  /// write to one row after the other: to different banks.
  void zeroTogether(Value isMissing, Value first) {
    Type i32 = b.builder.getI32Type();
    Value missing =
        NVVM::VoteSyncOp::create(b.builder, b.loc, i32, b.i32(-1), isMissing,
                                 NVVM::VoteSyncKind::ballot);
    auto isLeft = [&](OpBuilder &builder, Location loc, ValueRange left) {
      Value any = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        left[0], b.i32(0));
      scf::ConditionOp::create(builder, loc, any, left);
    };
    auto zeroNext = [&](OpBuilder &builder, Location loc, ValueRange left) {
      Value lane = LLVM::CountTrailingZerosOp::create(
          builder, loc, i32, left[0], /*is_zero_poison=*/true);
      zeroRow(b.add(first, b.fromI32(lane)), lanes);
      Value less = arith::SubIOp::create(builder, loc, left[0], b.i32(1));
      Value rest = arith::AndIOp::create(builder, loc, left[0], less);
      scf::YieldOp::create(builder, loc, rest);
    };
    scf::WhileOp::create(b.builder, b.loc, TypeRange(i32), ValueRange(missing),
                         isLeft, zeroNext);
  }

  /// Zeroes a row, spread over `writers`.
  void zeroRow(Value tileRow, Threads writers) {
    int64_t columns = 16 / layout.elementBytes;
    auto type =
        VectorType::get(columns, source.getTile().getType().getElementType());
    Value zeros = arith::ConstantOp::create(b.builder, b.loc,
                                            b.builder.getZeroAttr(type));
    b.loop(b.mul(writers.thread, b.index(columns)), b.index(layout.columns),
           b.mul(writers.count, b.index(columns)), [&](Value column) {
             TileStoreOp::create(b.builder, b.loc, zeros, source.getTile(),
                                 tileRow, column);
           });
  }

  IndexBuilder b;
  Source source;
  tma::TileLayout layout;
  Threads lanes;
  /// The policy is null without a hint.
  Value barrier, policy, memory;
};

} // namespace

void kvcache::emitBulkRows(OpBuilder &builder, TileCopyOpInterface copy,
                           Threads lanes, Barrier barrier) {
  IndexBuilder b(builder, copy->getLoc());
  BulkRows(b, copy, lanes, barrier).emit();
}
