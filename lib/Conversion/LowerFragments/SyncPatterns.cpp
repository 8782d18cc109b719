//===- SyncPatterns.cpp - Lower products of warps to mma.sync -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Rows and columns that are loaded at once, and those of k of an instruction.
static constexpr int64_t kStep = 16;

namespace {

/// Emits a product as `mma.sync.m16n8k16`.
class SyncProduct {
public:
  SyncProduct(OpBuilder &builder, FragmentMmaOp op, ValueRange a,
              ArrayRef<Value> sums)
      : b(builder, op.getLoc()), op(op), a(a), sums(sums),
        loader(builder, op.getLoc(), op.getB(),
               TeamThread::get(b, op.getType().getComplete()).lane) {}

  /// Queries stay in registers while keys pass, and products of values are
  /// added up in registers while these pass.
  ArrayRef<Value> emit() {
    bool isKMajor = op.getMajorB() == Major::K;
    int64_t outer = isKMajor ? op.getSizeK() : op.getSizeN();
    int64_t inner = isKMajor ? op.getSizeN() : op.getSizeK();
    for (int64_t i = 0; i < outer; i += kStep)
      for (int64_t j = 0; j < inner; j += kStep)
        isKMajor ? multiply(/*k=*/i, /*n=*/j) : multiply(/*k=*/j, /*n=*/i);
    return sums;
  }

private:
  /// 16 columns, of 16 columns of A.
  void multiply(int64_t k, int64_t n) {
    bool isKMajor = op.getMajorB() == Major::K;
    Value row = b.add(op.getBRow(), b.index(isKMajor ? n : k));
    Value column = b.add(op.getBColumn(), b.index(isKMajor ? k : n));
    SmallVector<Value> words = loader.load(row, column, !isKMajor);
    // Matrices of 8 x 8: the second one is 8 rows of the tile further.
    for (int64_t half = 0; half < 2; ++half) {
      auto [low, high] = isKMajor ? std::pair(half, half + 2)
                                  : std::pair(2 * half, 2 * half + 1);
      multiply(k, n + 8 * half, words[low], words[high]);
    }
  }

  void multiply(int64_t k, int64_t n, Value low, Value high) {
    constexpr size_t words = 4, elements = 4;
    ValueRange left = a.slice(k / kStep * words, words);
    MutableArrayRef<Value> sum =
        MutableArrayRef(sums).slice(n / 8 * elements, elements);
    auto operands = [&](ValueRange values) {
      return llvm::map_to_vector(values,
                                 [&](Value word) { return cast(word); });
    };
    Type f32 = b.builder.getF32Type();
    auto result = LLVM::LLVMStructType::getLiteral(b.builder.getContext(),
                                                   {f32, f32, f32, f32});
    NVVM::MMATypes type = isHalf() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
    Value product = NVVM::MmaOp::create(
        b.builder, b.loc, result, operands(left), operands({low, high}),
        ValueRange(ArrayRef<Value>(sum)), ArrayRef<int64_t>{16, 8, kStep},
        std::nullopt, std::nullopt, std::array{type, type},
        std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    for (auto [i, value] : llvm::enumerate(sum))
      value = LLVM::ExtractValueOp::create(b.builder, b.loc, product, i);
  }

  bool isHalf() { return op.getB().getType().getElementType().isF16(); }

  /// The NVVM dialect has words of bf16 as i32, and those of f16 as vectors.
  Value cast(Value word) {
    if (!isHalf())
      return word;
    auto pair = VectorType::get(2, b.builder.getF16Type());
    return LLVM::BitcastOp::create(b.builder, b.loc, pair, word);
  }

  IndexBuilder b;
  FragmentMmaOp op;
  ValueRange a;
  SmallVector<Value> sums;
  MatrixLoader loader;
};

struct LowerSyncProduct : OpConversionPattern<FragmentMmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FragmentMmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.isWgmma())
      return rewriter.notifyMatchFailure(op, "warpgroups multiply");
    if (failed(checkPlaces(op, op.getParts())))
      return failure();
    Location loc = op.getLoc();
    FragmentType complete = op.getType().getComplete();
    SmallVector<Value> sums =
        getSums(rewriter, op, adaptor.getAccumulator(), complete);
    SyncProduct product(rewriter, op, adaptor.getA(), sums);
    rewriter.replaceOp(op, join(rewriter, loc, complete, product.emit()));
    return success();
  }

private:
  static SmallVector<Value> getSums(OpBuilder &builder, FragmentMmaOp op,
                                    ValueRange given, FragmentType complete) {
    if (op.getAccumulator() && isa<InFlightType>(op.getAccumulator().getType()))
      return split(builder, op.getLoc(), given.front());
    if (op.getAccumulator())
      return given;
    Value zero = arith::ConstantOp::create(builder, op.getLoc(),
                                           builder.getF32FloatAttr(0));
    return SmallVector<Value>(complete.getParts().size(), zero);
  }
};

} // namespace

void kvcache::populateSyncPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<LowerSyncProduct>(converter, patterns.getContext());
}
