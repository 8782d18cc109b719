//===- KVCacheToLLVM.cpp - Lower remaining kvcache ops to LLVM ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/KVCacheToLLVM.h"

#include "DeviceCalls.h"
#include "kvcache/Conversion/KVCacheToNVVM.h"
#include "kvcache/GPU/Descriptors.h"
#include "kvcache/IR/CheckOps.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// An attribute of a kernel during its lowering to LLVM: the indices of the
/// descriptors among its LLVM arguments.
constexpr StringLiteral kDescriptorArgsAttr = "kvcache.descriptor_args";

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Lowers a check to an assertion if `convert-kvcache-checks` has not run. The
/// assertion needs no runtime library, and does not print the values.
/// The conversion of an assertion splits its block, which those of structured
/// ops don't allow.
LogicalResult checkMaySplit(Operation *op, RewriterBase &rewriter) {
  if (isa<FunctionOpInterface>(op->getParentOp()))
    return success();
  return rewriter.notifyMatchFailure(op, "in structured control flow");
}

struct LowerCheck : OpConversionPattern<CheckOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CheckOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkMaySplit(op, rewriter)))
      return failure();
    Value holds =
        arith::CmpIOp::create(rewriter, op.getLoc(), arith::CmpIPredicate::ult,
                              op.getValue(), op.getBound());
    rewriter.replaceOpWithNewOp<cf::AssertOp>(
        op, holds, addPosition(op.getLoc(), op.getWhat() + " is out of range"));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

struct LowerTensorMap : OpConversionPattern<EncodeTensorMapOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(EncodeTensorMapOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkMaySplit(op, rewriter)))
      return failure();
    Location loc = op.getLoc();
    DeviceCalls device(op->getParentOfType<ModuleOp>());
    auto [status, slot] = encodeTensorMap(rewriter, op, device);
    Value zero = arith::ConstantIntOp::create(rewriter, loc, device.i32, 0);
    Value holds = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                        status, zero);
    cf::AssertOp::create(rewriter, loc, holds,
                         addPosition(loc, "the descriptor can't be made"));
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(
        op, getDescriptorBytesType(getContext()), slot, kDescriptorAlignment);
    return success();
  }
};

/// Records the descriptors among the LLVM arguments of a kernel, which
/// upstream's lowering does not preserve.
struct NoteDescriptors : ConvertOpToLLVMPattern<gpu::GPUFuncOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(gpu::GPUFuncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.isKernel() || op->hasAttr(kDescriptorArgsAttr) ||
        llvm::none_of(op.getArgumentTypes(), llvm::IsaPred<TMATileType>))
      return rewriter.notifyMatchFailure(op, "no descriptors to note");
    const LLVMTypeConverter &converter = *getTypeConverter();
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    if (!converter.convertFunctionSignature(
            op.getFunctionType(), /*isVariadic=*/false,
            converter.getOptions().useBarePtrCallConv, signature))
      return rewriter.notifyMatchFailure(op, "arguments have no LLVM type");
    SmallVector<int64_t> positions;
    for (auto [index, type] : llvm::enumerate(op.getArgumentTypes()))
      if (isa<TMATileType>(type))
        positions.push_back(signature.getInputMapping(index)->inputNo);
    rewriter.modifyOpInPlace(op, [&] {
      op->setAttr(kDescriptorArgsAttr,
                  rewriter.getDenseI64ArrayAttr(positions));
    });
    return success();
  }
};

struct MarkDescriptors : OpConversionPattern<LLVM::LLVMFuncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LLVM::LLVMFuncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto positions = op->getAttrOfType<DenseI64ArrayAttr>(kDescriptorArgsAttr);
    if (!positions)
      return rewriter.notifyMatchFailure(op, "no descriptors noted");
    rewriter.modifyOpInPlace(op, [&] {
      for (int64_t position : positions.asArrayRef())
        markDescriptor(op, position);
      op->removeAttr(kDescriptorArgsAttr);
    });
    return success();
  }
};

/// In a kernel, a descriptor becomes a pointer to its parameter; on the host,
/// it is a value. Only the lowering of kernels has their memory spaces.
void addDescriptorConversion(LLVMTypeConverter &converter) {
  converter.addConversion([&converter](TMATileType type) -> Type {
    MLIRContext *context = type.getContext();
    auto shared =
        gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Workgroup);
    auto memory = MemRefType::get({}, IntegerType::get(context, 8),
                                  MemRefLayoutAttrInterface(), shared);
    if (converter.convertTypeAttribute(memory, shared))
      return LLVM::LLVMPointerType::get(context);
    return getDescriptorBytesType(context);
  });
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

struct KVCacheToLLVMInterface : ConvertToLLVMPatternInterface {
  using ConvertToLLVMPatternInterface::ConvertToLLVMPatternInterface;

  void loadDependentDialects(MLIRContext *context) const override {
    context->loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                         memref::MemRefDialect, NVVM::NVVMDialect,
                         ub::UBDialect, vector::VectorDialect>();
  }

  void populateConvertToLLVMConversionPatterns(
      ConversionTarget &target, LLVMTypeConverter &converter,
      RewritePatternSet &patterns) const override {
    addDescriptorConversion(converter);
    target.addIllegalOp<CheckOp, EncodeTensorMapOp>();
    target.addDynamicallyLegalOp<LLVM::LLVMFuncOp>(
        [](LLVM::LLVMFuncOp op) { return !op->hasAttr(kDescriptorArgsAttr); });
    patterns.add<LowerCheck, LowerTensorMap, MarkDescriptors>(
        patterns.getContext());
    // Apply before the upstream patterns.
    patterns.add<NoteDescriptors>(converter, /*benefit=*/100);
    addKVCacheToNVVMLegality(target);
    populateKVCacheToNVVMPatterns(patterns, /*mayLoop=*/false);
  }
};

} // namespace

void kvcache::registerConvertKVCacheToLLVMInterface(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, KVCacheDialect *dialect) {
    dialect->addInterfaces<KVCacheToLLVMInterface>();
  });
}
