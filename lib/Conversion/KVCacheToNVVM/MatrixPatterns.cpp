//===- MatrixPatterns.cpp - Lower products of tiles -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptors.h"
#include "Patterns.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/Target/Wgmma.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// The vector of 32-bit registers that a fragment is: f32 and i32 as they are,
/// smaller elements in i32, the first one in the low bits.
static VectorType getRegisters(VectorType fragment) {
  unsigned bits = fragment.getElementTypeBitWidth();
  if (bits == 32)
    return fragment;
  return VectorType::get(fragment.getNumElements() * bits / 32,
                         IntegerType::get(fragment.getContext(), 32));
}

static SmallVector<Value> toRegisters(OpBuilder &builder, Location loc,
                                      Value fragment) {
  VectorType type = getRegisters(cast<VectorType>(fragment.getType()));
  fragment = builder.createOrFold<vector::BitCastOp>(loc, type, fragment);
  return vector::ToElementsOp::create(builder, loc, fragment).getResults();
}

static Value fromRegisters(OpBuilder &builder, Location loc, VectorType type,
                           ValueRange registers) {
  Value all = vector::FromElementsOp::create(builder, loc, getRegisters(type),
                                             registers);
  return builder.createOrFold<vector::BitCastOp>(loc, type, all);
}

static Value toStructure(OpBuilder &builder, Location loc,
                         ValueRange registers) {
  Type type = LLVM::LLVMStructType::getLiteral(
      builder.getContext(), SmallVector<Type>(registers.getTypes()));
  Value all = LLVM::UndefOp::create(builder, loc, type);
  for (auto [number, value] : llvm::enumerate(registers))
    all = LLVM::InsertValueOp::create(builder, loc, all, value,
                                      static_cast<int64_t>(number));
  return all;
}

static SmallVector<Value> fromStructure(OpBuilder &builder, Location loc,
                                        Value all) {
  SmallVector<Value> registers;
  auto type = cast<LLVM::LLVMStructType>(all.getType());
  for (size_t i = 0; i < type.getBody().size(); ++i)
    registers.push_back(LLVM::ExtractValueOp::create(builder, loc, all,
                                                     static_cast<int64_t>(i)));
  return registers;
}

/// Checks that another product ends the group of a `grouped` one. (C9)
static LogicalResult checkGroup(MmaOp op) {
  if (!op.getGrouped())
    return success();
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    if (isa<MmaOp, NVVM::WgmmaGroupSyncAlignedOp>(next))
      return success();
    if (isa<MmaWaitOp, NVVM::WgmmaWaitGroupSyncOp>(next) ||
        next->getNumRegions() > 0)
      break;
  }
  return op.emitOpError("with 'grouped' expects another 'kvcache.mma' after it "
                        "in its block, and no wait and no region in between");
}

LogicalResult kvcache::checkMatrixProduct(Operation *op) {
  if (failed(checkFeature(op, Feature::WGMMA)))
    return failure();
  auto product = dyn_cast<MmaOp>(op);
  if (!product)
    return success();
  return failure(failed(checkPlaces(op, product.getParts())) ||
                 failed(checkGroup(product)));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static NVVM::WGMMATypes getWgmmaType(Type type) {
  if (type.isF16())
    return NVVM::WGMMATypes::f16;
  if (type.isBF16())
    return NVVM::WGMMATypes::bf16;
  if (isa<Float8E4M3FNType>(type))
    return NVVM::WGMMATypes::e4m3;
  if (isa<Float8E5M2Type>(type))
    return NVVM::WGMMATypes::e5m2;
  if (type.isInteger(8))
    return NVVM::WGMMATypes::s8;
  return type.isF32() ? NVVM::WGMMATypes::f32 : NVVM::WGMMATypes::s32;
}

namespace {

/// The instructions of one product, along K.
class Products {
public:
  Products(OpBuilder &builder, MmaOp op)
      : builder(builder), op(op), loc(op.getLoc()),
        descriptorsB(builder, loc, op.getParts()[0], tma::MatrixFormat::WGMMA) {
    form.n = op.getSizeN();
    Type b = op.getB().getType().getElementType();
    constexpr int64_t stepBits = 256;
    form.k = stepBits / b.getIntOrFloatBitWidth();
    form.typeD = getWgmmaType(op.getType().getElementType());
    form.typeB = getWgmmaType(b);
    form.isMNMajorB = op.getMajorB() == Major::MN;
  }

  Value create() {
    SmallVector<Value> registers = getAccumulators();
    registers =
        op.getTileA() ? multiplyTile(registers) : multiplyFragment(registers);
    return fromRegisters(builder, loc, op.getType(), registers);
  }

private:
  /// Without accumulators, the first instruction does not read the registers.
  SmallVector<Value> getAccumulators() {
    form.accumulates = op.getAccumulators() != nullptr;
    if (form.accumulates)
      return toRegisters(builder, loc, op.getAccumulators());
    Value none = LLVM::UndefOp::create(
        builder, loc, form.getRegisterType(builder.getContext()));
    return SmallVector<Value>(form.getNumRegisters(), none);
  }

  SmallVector<Value> multiplyTile(ValueRange registers) {
    DescriptorBuilder descriptorsA(builder, loc, op.getParts()[1],
                                   tma::MatrixFormat::WGMMA);
    form.typeA = getWgmmaType(op.getTileA().getType().getElementType());
    SmallVector<std::pair<Value, Value>> descriptors;
    for (int64_t k = 0; k < op.getSizeK(); k += form.k)
      descriptors.emplace_back(descriptorsA.get(k), descriptorsB.get(k));
    Value all = toStructure(builder, loc, registers);
    NVVM::WgmmaFenceAlignedOp::create(builder, loc);
    for (auto [descriptorA, descriptorB] : descriptors) {
      all = createProduct(all, descriptorA, descriptorB);
      form.accumulates = true;
    }
    endGroup();
    return fromStructure(builder, loc, all);
  }

  Value createProduct(Value all, Value descriptorA, Value descriptorB) {
    MLIRContext *context = builder.getContext();
    auto layoutOf = [&](bool isFirst) {
      return NVVM::MMALayoutAttr::get(context, isFirst ? NVVM::MMALayout::row
                                                       : NVVM::MMALayout::col);
    };
    auto typeOf = [&](NVVM::WGMMATypes type) {
      return NVVM::WGMMATypesAttr::get(context, type);
    };
    auto one = NVVM::WGMMAScaleInAttr::get(context, NVVM::WGMMAScaleIn::one);
    auto scale = NVVM::WGMMAScaleOutAttr::get(
        context, form.accumulates ? NVVM::WGMMAScaleOut::one
                                  : NVVM::WGMMAScaleOut::zero);
    return NVVM::WgmmaMmaAsyncOp::create(
        builder, loc, all.getType(), all, descriptorA, descriptorB,
        NVVM::MMAShapeAttr::get(context, MmaOp::kM, form.n, form.k),
        typeOf(form.typeA), typeOf(form.typeB), typeOf(form.typeD), scale, one,
        one, layoutOf(op.getMajorA() == Major::K),
        layoutOf(op.getMajorB() == Major::MN),
        /*satfinite=*/NVVM::MMAIntOverflowAttr());
  }

  SmallVector<Value> multiplyFragment(SmallVector<Value> registers) {
    auto fragment = cast<VectorType>(op.getA().getType());
    form.typeA = getWgmmaType(fragment.getElementType());
    SmallVector<Value> a = toRegisters(builder, loc, op.getA());
    SmallVector<Value> descriptors;
    for (int64_t k = 0; k < op.getSizeK(); k += form.k)
      descriptors.push_back(descriptorsB.get(k));
    NVVM::WgmmaFenceAlignedOp::create(builder, loc);
    for (auto [step, descriptor] : llvm::enumerate(descriptors)) {
      constexpr size_t count = RegisterWgmma::kNumRegistersA;
      Value all =
          form.create(builder, loc, ArrayRef(a).slice(step * count, count),
                      descriptor, registers)
              .getRes();
      registers = fromStructure(builder, loc, all);
      form.accumulates = true;
    }
    endGroup();
    return registers;
  }

  void endGroup() {
    if (!op.getGrouped())
      NVVM::WgmmaGroupSyncAlignedOp::create(builder, loc);
  }

  OpBuilder &builder;
  MmaOp op;
  Location loc;
  DescriptorBuilder descriptorsB;
  RegisterWgmma form;
};

struct LowerMma : OpConversionPattern<MmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MmaOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkMatrixProduct(op)))
      return failure();
    rewriter.replaceOp(op, Products(rewriter, op).create());
    return success();
  }
};

/// The fence keeps uses of the products after the wait, also in LLVM.
struct LowerMmaWait : OpConversionPattern<MmaWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MmaWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkMatrixProduct(op)))
      return failure();
    Location loc = op.getLoc();
    NVVM::WgmmaWaitGroupSyncOp::create(rewriter, loc, op.getPending());
    SmallVector<Value> results;
    for (Value product : op.getProducts()) {
      SmallVector<Value> registers = createRegisterFence(
          rewriter, loc, toRegisters(rewriter, loc, product));
      results.push_back(fromRegisters(
          rewriter, loc, cast<VectorType>(product.getType()), registers));
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void kvcache::populateMatrixPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerMma, LowerMmaWait>(patterns.getContext());
}
