//===- FragmentRowOps.cpp - Rows of fragments in memory -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/FragmentRowOps.h"
#include "RegionRules.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/PipeOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// store_rows
//===----------------------------------------------------------------------===//

/// Verifies the argument of a region that computes where rows are stored, and
/// that it yields `indices` of them.
static LogicalResult verifyPlaces(Operation *op, Region &region,
                                  int64_t indices) {
  Block &body = region.front();
  Type index = IndexType::get(op->getContext());
  if (!llvm::equal(body.getArgumentTypes(), ArrayRef(index)))
    return op->emitOpError("expects the argument of the region to be an "
                           "index, got ")
           << body.getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield)
    return op->emitOpError("expects the region to end with 'kvcache.yield'");
  SmallVector<Type> types(indices, index);
  types.push_back(IntegerType::get(op->getContext(), 1));
  if (!llvm::equal(yield.getOperandTypes(), types))
    return op->emitOpError("expects the region to yield ")
           << types << ", got " << yield.getOperandTypes();
  return success();
}

static LogicalResult verifyAlignment(Operation *op,
                                     std::optional<uint64_t> alignment,
                                     FragmentType type, Type element) {
  if (!alignment)
    return success();
  uint64_t run = type.hasColumns() ? LayoutDigits::get(type).countRun() : 1;
  uint64_t most = run * element.getIntOrFloatBitWidth() / 8;
  if (llvm::isPowerOf2_64(*alignment) && *alignment <= most)
    return success();
  return op->emitOpError("expects 'alignment' to be a power of two of at most "
                         "the bytes stored at once (")
         << most << "), got " << *alignment;
}

/// Verifies the ops of a region that computes where rows are stored.
static LogicalResult verifyPlaceOps(Operation *op, Region &region) {
  WalkResult result = region.walk([&](Operation *each) {
    return WalkResult(isa<CheckOp>(each) ? success()
                                         : verifyFragmentRegion(each, op));
  });
  return failure(result.wasInterrupted());
}

LogicalResult StoreRowsOp::verify() {
  FragmentType type = getValue().getType();
  // (C1)
  if (type.getPartial())
    return emitOpError("expects a fragment that is not partial, got ") << type;
  if (type.hasColumns() != static_cast<bool>(getColumn()))
    return emitOpError("expects 'at' to have a row, and a column if the "
                       "fragment has columns");
  auto memref = cast<MemRefType>(getMemref().getType());
  // (C4)
  Type from = type.getElementType(), to = memref.getElementType();
  bool isRounded =
      from.isF32() && isa<BFloat16Type, Float16Type, Float8E4M3FNType,
                          Float8E5M2Type, Float8E8M0FNUType>(to);
  if ((from != to && !isRounded) || !to.isIntOrFloat() ||
      to.getIntOrFloatBitWidth() % 8)
    return emitOpError("expects elements of whole bytes, the same in the "
                       "fragment and the memref, or f32 that are rounded, got ")
           << from << " and " << to;
  // (C5)
  if (type.hasColumns() && !memref.isLastDimUnitStride())
    return emitOpError("expects the elements of the last dimension of 'memref' "
                       "to be side by side, got ")
           << memref;
  // (C6)
  if (failed(verifyAlignment(*this, getAlignment(), type, to)))
    return failure();
  // (C2)
  if (memref.getRank() < type.hasColumns())
    return emitOpError("expects 'memref' to have a dimension of columns, got ")
           << memref;
  return verifyPlaces(*this, getBody(), memref.getRank() - type.hasColumns());
}

// (C3)
LogicalResult StoreRowsOp::verifyRegions() {
  return verifyPlaceOps(*this, getBody());
}

//===----------------------------------------------------------------------===//
// store_split
//===----------------------------------------------------------------------===//

/// (C2)
static LogicalResult verifySplitMemory(StoreSplitOp op) {
  Type element = op.getAcc().getType().getElementType();
  auto accs = cast<MemRefType>(op.getAccs().getType()),
       states = cast<MemRefType>(op.getStates().getType());
  for (auto [name, type] : {std::pair("accs", accs), {"states", states}}) {
    if (type.getElementType() != element || !element.isIntOrFloat() ||
        element.getIntOrFloatBitWidth() % 8)
      return op.emitOpError("expects '")
             << name << "' to have the element type of 'acc', of whole bytes, "
             << element << ", got " << type;
    if (type.getRank() == 0 || !type.isLastDimUnitStride())
      return op.emitOpError("expects the elements of the last dimension of '")
             << name << "' to be side by side, got " << type;
  }
  if (states.getRank() != accs.getRank() || states.getShape().back() != 2)
    return op.emitOpError("expects 'states' to have the rank of 'accs', and 2 "
                          "elements in the last dimension, got ")
           << states;
  return success();
}

LogicalResult StoreSplitOp::verify() {
  FragmentType acc = getAcc().getType(), row = getMax().getType();
  // (C1)
  if (!acc.hasColumns())
    return emitOpError("expects 'acc' to have two dimensions, got ") << acc;
  if (!LayoutDigits::get(acc).isAccumulator())
    return emitOpError("expects 'acc' to have the layout of an accumulator, "
                       "got ")
           << acc;
  if (row.hasColumns() || row.getPartial() ||
      row.getElementType() != acc.getElementType() ||
      !LayoutDigits::haveSameRows(row, acc))
    return emitOpError("expects 'max' and 'sum' to be ")
           << acc.getRowType() << ", or to have its rows, got " << row;
  if (failed(verifySplitMemory(*this)) ||
      failed(verifyAlignment(*this, getAlignment(), acc,
                             acc.getElementType()))) // (C5)
    return failure();
  // (C3)
  return verifyPlaces(*this, getBody(),
                      cast<MemRefType>(getAccs().getType()).getRank() - 1);
}

// (C4)
LogicalResult StoreSplitOp::verifyRegions() {
  return verifyPlaceOps(*this, getBody());
}
