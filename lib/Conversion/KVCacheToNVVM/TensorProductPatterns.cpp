//===- TensorProductPatterns.cpp - Lower products into tensor memory ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptors.h"
#include "Patterns.h"
#include "TensorMemory.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/TMA/InstructionDescriptor.h"
#include "kvcache/Target/Wgmma.h"

#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The instructions of one product into tensor memory, along K.
class TensorProducts {
public:
  TensorProducts(OpBuilder &builder, TmemMmaOp op, TmemMmaOp::Adaptor adaptor)
      : b(builder, op.getLoc()), op(op), adaptor(adaptor),
        d(op.getD().getType()), parts(op.getParts()),
        columns(op.getSizeN() / op.countProducts()),
        group(getGroup(op.getPair())) {
    // The rows of A and the columns of B that both blocks of a pair have.
    int64_t blocks = op.getPair() ? 2 : 1;
    instruction.m = blocks * op.getSizeM();
    instruction.n = blocks * columns;
    Type a = op.getTileA()
                 ? op.getTileA().getType().getElementType()
                 : cast<TmemTileType>(op.getA().getType()).getElementType();
    Type typeB = op.getB().getType().getElementType();
    instruction.a = getType(a);
    instruction.b = getType(typeB);
    if (d.getElementType().isInteger())
      instruction.d = tma::InstructionDescriptor::ResultS32;
    instruction.majorA = getMajor(op.getMajorA());
    instruction.majorB = getMajor(op.getMajorB());
    constexpr int64_t bits = 8 * MatrixPart::kStepBytes;
    step = bits / typeB.getIntOrFloatBitWidth();
    kind = typeB.isInteger()                    ? NVVM::Tcgen05MMAKind::I8
           : typeB.getIntOrFloatBitWidth() == 8 ? NVVM::Tcgen05MMAKind::F8F6F4
                                                : NVVM::Tcgen05MMAKind::F16;
  }

  void create() {
    emitFenceAfterOthers(b);
    for (int64_t i = 0; i < op.countProducts(); ++i)
      multiply(i);
  }

private:
  static tma::Major getMajor(Major major) {
    return major == Major::K ? tma::Major::K : tma::Major::MN;
  }

  static tma::InstructionDescriptor::Type getType(Type type) {
    using Descriptor = tma::InstructionDescriptor;
    if (type.isF16())
      return Descriptor::F16;
    if (type.isBF16())
      return Descriptor::BF16;
    if (type.isInteger())
      return Descriptor::S8;
    return isa<Float8E4M3FNType>(type) ? Descriptor::E4M3 : Descriptor::E5M2;
  }

  Value constant(int64_t value, unsigned bits) {
    return arith::ConstantIntOp::create(b.builder, b.loc, value, bits);
  }

  /// B of product `i`: with the columns of D from `i columns` on.
  MatrixPart getPartB(int64_t i) {
    MatrixPart part = parts.front();
    if (i == 0)
      return part;
    Value &place = part.major == Major::K ? part.row : part.column;
    place = b.add(place, b.index(i * columns));
    return part;
  }

  /// Where product `i` begins in D, and with it in A in tensor memory, which is
  /// in all lanes that D has.
  int64_t getLanes(int64_t i) {
    return d.isSplitByLanes() ? i * kFragmentLanes * kTensorLane : 0;
  }

  void multiply(int64_t i) {
    DescriptorBuilder descriptorB(b.builder, b.loc, getPartB(i),
                                  tma::MatrixFormat::TCGen05);
    std::optional<DescriptorBuilder> descriptorA;
    Value addressA;
    if (op.getTileA())
      descriptorA.emplace(b.builder, b.loc, parts.back(),
                          tma::MatrixFormat::TCGen05);
    else
      addressA =
          offsetAddress(b, getTensorAddress(b, adaptor.getA()), getLanes(i));
    int64_t begin = d.isSplitByLanes() ? getLanes(i) : i * columns;
    Value to = toTensorPointer(
        b, offsetAddress(b, getTensorAddress(b, adaptor.getD()), begin));
    Value bits = constant(instruction.encode(), 32);
    Value adds = op.getAdd() ? Value(op.getAdd()) : constant(0, 1);
    for (int64_t k = 0; k < op.getSizeK(); k += step) {
      constexpr int64_t stepColumns = MatrixPart::kStepBytes / 4;
      Value a = descriptorA
                    ? descriptorA->get(k)
                    : toTensorPointer(b, offsetAddress(b, addressA,
                                                       k / step * stepColumns));
      NVVM::Tcgen05MMAOp::create(b.builder, b.loc, kind, group,
                                 NVVM::Tcgen05MMACollectorOp::DISCARD,
                                 /*aShift=*/false, to, a, descriptorB.get(k),
                                 bits, adds, /*scaleInputD=*/Value(),
                                 /*disableOutputLane=*/Value());
      if (k == 0)
        adds = constant(1, 1);
    }
  }

  IndexBuilder b;
  TmemMmaOp op;
  TmemMmaOp::Adaptor adaptor;
  TmemTileType d;
  SmallVector<MatrixPart, 2> parts;
  /// Columns of D of one product.
  int64_t columns;
  NVVM::CTAGroupKind group;
  tma::InstructionDescriptor instruction;
  NVVM::Tcgen05MMAKind kind;
  /// Elements of K of one instruction.
  int64_t step;
};

struct LowerTmemMma : OpConversionPattern<TmemMmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemMmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkTensorMemory(op)))
      return failure();
    TensorProducts(rewriter, op, adaptor).create();
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerTmemCommit : OpConversionPattern<TmemCommitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmemCommitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkTensorMemory(op)))
      return failure();
    Location loc = op.getLoc();
    Value barrier =
        getBarrierPointer(rewriter, loc, op.getBarriers(), op.getBarrier());
    constexpr int64_t bothBlocks = 0b11;
    Value mask;
    if (op.getPair())
      mask = arith::ConstantIntOp::create(rewriter, loc, bothBlocks,
                                          /*width=*/16);
    rewriter.replaceOpWithNewOp<NVVM::Tcgen05CommitOp>(op, barrier, mask,
                                                       getGroup(op.getPair()));
    return success();
  }
};

} // namespace

void kvcache::populateTensorProductPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerTmemMma, LowerTmemCommit>(patterns.getContext());
}
