//===- BufferizableOps.cpp - Bufferization of whole-cache ops -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/BufferizableOps.h"

#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/SelectionOps.h"
#include "kvcache/IR/SplitOps.h"
#include "kvcache/IR/WholeCacheOps.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::kvcache;

namespace {

/// The slices that a tensor is a part of, the innermost first, and the tensor
/// that they slice. Ops between change the shape, or write to the tensor: their
/// result is in the same memory, or in none of these slices.
struct Slices {
  explicit Slices(Value tensor) {
    while (Operation *op = tensor.getDefiningOp()) {
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
        all.push_back(slice);
        tensor = slice.getSource();
      } else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                     tensor::CastOp>(op)) {
        tensor = op->getOperand(0);
      } else if (auto inPlace = dyn_cast<DestinationStyleOpInterface>(op)) {
        tensor = inPlace.getTiedOpOperand(cast<OpResult>(tensor))->get();
      } else {
        break;
      }
    }
    whole = tensor;
  }

  SmallVector<tensor::ExtractSliceOp> all;
  Value whole;
};

/// Whether an op runs at most once in a call of its function.
bool runsOnce(Operation *op) {
  if (getEnclosingRepetitiveRegion(op))
    return false;
  for (; op && !isa<FunctionOpInterface>(op); op = op->getParentOp())
    if (Region *region = op->getParentRegion();
        region && !region->hasOneBlock() && !isa<ModuleOp>(op))
      return false;
  return true;
}

/// Whether two ops slice one tensor, and not also those of
/// other iterations of a loop, whose slices may lie elsewhere.
bool haveOneWhole(Operation *lhs, Operation *rhs, Value whole) {
  if (runsOnce(lhs) && runsOnce(rhs))
    return true;
  Region *loop = getEnclosingRepetitiveRegion(lhs);
  auto empty = whole.getDefiningOp<tensor::EmptyOp>();
  return empty && loop && loop == getEnclosingRepetitiveRegion(rhs) &&
         loop == getEnclosingRepetitiveRegion(empty.getOperation());
}

/// Whether two operands are parts of one tensor that do not overlap.
bool areApart(const OpOperand &lhs, const OpOperand &rhs) {
  Slices lhsSlices(lhs.get()), rhsSlices(rhs.get());
  if (lhsSlices.whole != rhsSlices.whole ||
      !haveOneWhole(lhs.getOwner(), rhs.getOwner(), lhsSlices.whole))
    return false;
  MLIRContext *context = lhs.getOwner()->getContext();
  for (tensor::ExtractSliceOp one : lhsSlices.all)
    for (tensor::ExtractSliceOp other : rhsSlices.all) {
      if (one.getSource() != other.getSource())
        continue;
      FailureOr<bool> overlap = ValueBoundsConstraintSet::areOverlappingSlices(
          context, HyperrectangularSlice(one), HyperrectangularSlice(other));
      if (succeeded(overlap) && !*overlap)
        return true;
    }
  return false;
}

/// Replaces the tensors of an op by buffers, and its results by those of
/// `outs`.
template <typename OpTy>
struct Model : DstBufferizableOpInterfaceExternalModel<Model<OpTy>, OpTy> {
  /// Keys, values and queries may be slices of one projection.
  bool isNotConflicting(Operation *op, OpOperand *read, OpOperand *write,
                        const AnalysisState &state) const {
    return areApart(*read, *write);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    SmallVector<Value> operands, results;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (isa<TensorType>(value.getType())) {
        FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
        if (failed(buffer))
          return failure();
        value = *buffer;
        if (cast<DestinationStyleOpInterface>(op).isDpsInit(&operand))
          results.push_back(value);
      }
      operands.push_back(value);
    }
    rewriter.setInsertionPoint(op);
    OperationState created(op->getLoc(), op->getName());
    created.addOperands(operands);
    created.addAttributes(op->getDiscardableAttrDictionary().getValue());
    created.propertiesAttr = op->getPropertiesAsAttribute();
    for (Region &region : op->getRegions())
      created.addRegion()->takeBody(region);
    rewriter.create(created);
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

template <typename... OpTys> void attach(MLIRContext *context) {
  (OpTys::template attachInterface<Model<OpTys>>(*context), ...);
}

} // namespace

void kvcache::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVCacheDialect *) {
    context->loadDialect<BufferizationDialect>();
    attach<AppendOp, AttentionOp, GatherOp, CopyOp, CopyPagesOp, IndexScoresOp,
           MergeStatesOp, RemapRowsOp, TopRowsOp, PoolOp>(context);
  });
}
