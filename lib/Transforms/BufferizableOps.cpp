//===- BufferizableOps.cpp - Bufferization of whole-cache ops -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/BufferizableOps.h"

#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/WholeCacheOps.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::kvcache;

namespace {

/// Replaces the tensors of an op by buffers, and its results by those of
/// `outs`.
template <typename OpTy>
struct Model : DstBufferizableOpInterfaceExternalModel<Model<OpTy>, OpTy> {
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
    attach<AppendOp, AttentionOp, GatherOp, CopyOp, CopyPagesOp, MergeStatesOp,
           RemapRowsOp>(context);
  });
}
