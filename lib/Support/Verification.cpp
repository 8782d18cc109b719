//===- Verification.cpp - What verifiers can't take -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/Verification.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::kvcache;

static LogicalResult verifyOperandSegments(Operation *op) {
  return OpTrait::impl::verifyOperandSizeAttr(op, "operandSegmentSizes");
}

/// The arguments of a body are more than its buffers of shared memory.
static LogicalResult checkAttributions(Operation *op, Region &body,
                                       StringRef name) {
  auto count = op->getAttrOfType<IntegerAttr>(name);
  unsigned numArguments = body.empty() ? 0 : body.getNumArguments();
  if (!count || body.empty() || count.getValue().ule(numArguments))
    return success();
  return op->emitOpError("expects '")
         << name << "' to be at most the number of arguments of its body ("
         << numArguments << "), got " << count;
}

/// A product of matrices: what the verifier and the printer infer types from.
template <typename Op> static LogicalResult checkProduct(Op op) {
  if (failed(verifyOperandSegments(op)))
    return failure();
  for (unsigned segment : {0u, 1u, 2u})
    if (op.getODSOperands(segment).empty())
      return op.emitOpError("expects registers of ")
             << StringRef("ABC").substr(segment, 1);
  if (!op.getMultiplicandAPtxType())
    return op.emitOpError("expects 'multiplicandAPtxType'");
  for (Type type :
       {op.getODSOperands(2).front().getType(), op.getRes().getType()}) {
    auto fields = dyn_cast<LLVM::LLVMStructType>(type);
    if ((fields && (fields.isOpaque() || fields.getBody().empty())) ||
        !NVVM::MmaOp::inferOperandMMAType(type, /*isAccumulator=*/true))
      return op.emitOpError("has no accumulators of ") << type;
  }
  return success();
}

template <typename Op> static LogicalResult checkPosition(Op op) {
  auto position = op->template getAttrOfType<DenseI64ArrayAttr>("position");
  if (!position || llvm::all_of(position.asArrayRef(), isElementIndex))
    return success();
  return op.emitOpError("expects indices from 0 to 2^31 - 1 as 'position', "
                        "got ")
         << position;
}

/// The type of a function, which the verifier of launches compares with its
/// arguments before the function itself is verified.
static LogicalResult checkFunctionType(Operation *op) {
  if (op->getAttrOfType<TypeAttr>("function_type"))
    return success();
  return op->emitOpError("expects a type as 'function_type'");
}

/// An asynchronous copy: its memrefs, which maps index, stand before its size.
static LogicalResult checkMemRefs(Operation *op, ArrayRef<StringRef> maps) {
  unsigned position = 0;
  for (StringRef name : maps) {
    auto map = op->getAttrOfType<AffineMapAttr>(name);
    if (!map)
      return op->emitOpError("expects an affine map as '") << name << "'";
    if (position >= op->getNumOperands() ||
        !isa<MemRefType>(op->getOperand(position).getType()))
      return op->emitOpError("expects a memref as operand ") << position;
    position += 1 + map.getValue().getNumInputs();
  }
  if (position >= op->getNumOperands())
    return op->emitOpError("expects more than ") << position << " operands";
  return success();
}

/// An op of linalg, whose verifier takes its loops from its first output.
static LogicalResult checkOutputs(linalg::LinalgOp op) {
  if (op->hasTrait<OpTrait::AttrSizedOperandSegments>() &&
      failed(verifyOperandSegments(op)))
    return failure();
  if (op.getNumDpsInits() != 0)
    return success();
  return op->emitOpError("expects an operand as 'outputs'");
}

LogicalResult kvcache::checkCallee(LLVM::InvokeOp op) {
  if (!op || op.getCalleeAttr() || op->getNumOperands() != 0)
    return success();
  return op.emitOpError("calls no function: it has neither the name of one nor "
                        "an operand");
}

/// A variable, whose verifier takes the type of its value for a tensor's.
static LogicalResult checkInitialValue(memref::GlobalOp op) {
  auto value = op->getAttrOfType<ElementsAttr>("initial_value");
  if (!value || isa<RankedTensorType>(value.getType()))
    return success();
  return op.emitOpError("expects a tensor as 'initial_value', got ")
         << value.getType();
}

/// The result of a reduction, whose type is that of the first argument.
static LogicalResult checkReduction(scf::ReduceReturnOp op) {
  if (op->getBlock()->getNumArguments() != 0)
    return success();
  return op.emitOpError("expects arguments of its block");
}

/// A change of shape, whose verifier takes the first dimension of each group.
static LogicalResult checkReassociation(tensor::ExpandShapeOp op) {
  auto groups = op->getAttrOfType<ArrayAttr>(op.getReassociationAttrName());
  bool hasEmpty = groups && llvm::any_of(groups, [](Attribute group) {
                    auto dims = dyn_cast<ArrayAttr>(group);
                    return dims && dims.empty();
                  });
  if (!hasEmpty)
    return success();
  return op.emitOpError("expects a dimension in each group of "
                        "'reassociation'");
}

static LogicalResult check(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([](gpu::LaunchFuncOp op) { return verifyOperandSegments(op); })
      .Case([](gpu::GPUFuncOp op) -> LogicalResult {
        if (failed(checkFunctionType(op)))
          return failure();
        return checkAttributions(op, op.getBody(),
                                 op.getNumWorkgroupAttributionsAttrName());
      })
      .Case([](LLVM::LLVMFuncOp op) { return checkFunctionType(op); })
      .Case([](LLVM::InvokeOp op) { return checkCallee(op); })
      .Case<LLVM::ExtractValueOp, LLVM::InsertValueOp>(
          [](auto op) { return checkPosition(op); })
      .Case([](gpu::LaunchOp op) -> LogicalResult {
        if (op.getBody().empty())
          return op.emitOpError("expects a body");
        return checkAttributions(op, op.getBody(),
                                 op.getNumWorkgroupAttributionsAttrName());
      })
      .Case<NVVM::MmaOp, NVVM::MmaSpOp, NVVM::MmaBlockScaleOp,
            NVVM::MmaSpBlockScaleOp>([](auto op) { return checkProduct(op); })
      .Case([](cf::SwitchOp op) -> LogicalResult {
        if (op->getNumSuccessors() <= 1 || op.getCaseValues())
          return success();
        return op.emitOpError("expects 'case_values'");
      })
      .Case([](affine::AffineDmaStartOp op) {
        return checkMemRefs(op, {op.getSrcMapAttrStrName(),
                                 op.getDstMapAttrStrName(),
                                 op.getTagMapAttrStrName()});
      })
      .Case([](affine::AffineDmaWaitOp op) {
        return checkMemRefs(op, {op.getTagMapAttrStrName()});
      })
      .Case([](memref::GlobalOp op) { return checkInitialValue(op); })
      .Case([](tensor::ExpandShapeOp op) { return checkReassociation(op); })
      .Case([](scf::ReduceReturnOp op) { return checkReduction(op); })
      .Case([](linalg::LinalgOp op) { return checkOutputs(op); })
      .Default(success());
}

LogicalResult kvcache::checkBeforeVerification(Operation *op) {
  WalkResult result = op->walk<WalkOrder::PreOrder>(
      [](Operation *op) { return WalkResult(check(op)); });
  return failure(result.wasInterrupted());
}

/// Whether a text may have ops that fail: those of the generic form, whose
/// attributes the parser does not check, and those with an attribute that
/// others infer.
static bool mayFail(StringRef text) {
  return text.contains("\"gpu.") || text.contains("\"nvvm.") ||
         text.contains("\"llvm.") || text.contains("\"affine.dma_") ||
         text.contains("linalg.") || text.contains("\"cf.switch\"") ||
         text.contains("\"memref.global\"") ||
         text.contains("scf.reduce.return") || text.contains("expand_shape") ||
         text.contains("workgroup_attributions");
}

LogicalResult
kvcache::checkBeforeVerification(StringRef text, StringRef filename,
                                 StringRef splitMarker,
                                 const DialectRegistry &registry) {
  if (!mayFail(text))
    return success();
  SmallVector<StringRef> parts = {text};
  if (!splitMarker.empty()) {
    parts.clear();
    text.split(parts, splitMarker);
  }
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  context.printOpOnDiagnostic(false);
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  bool failed = false;
  for (StringRef part : parts) {
    // Lines are those of the whole text.
    std::string source(text.take_front(part.data() - text.data()).count('\n'),
                       '\n');
    source += part;
    llvm::SourceMgr sourceMgr;
    sourceMgr.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(source, filename), SMLoc());
    Block block;
    {
      ScopedDiagnosticHandler ignore(&context,
                                     [](Diagnostic &) { return success(); });
      if (mlir::failed(parseSourceFile(sourceMgr, &block, config)))
        continue;
    }
    SourceMgrDiagnosticHandler print(sourceMgr, &context);
    for (Operation &op : block)
      failed |= mlir::failed(checkBeforeVerification(&op));
  }
  return failure(failed);
}
