//===- SyncPatterns.cpp - Lower products of warps to mma.sync -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DequantProduct.h"
#include "PackedProduct.h"
#include "Registers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Rows and columns that are loaded at once, and those of k of an instruction.
static constexpr int64_t kStep = 16;

/// The NVVM dialect has words of bf16 as i32, and those of f16 as vectors.
static SmallVector<Value> castWords(OpBuilder &builder, Location loc,
                                    bool isHalf, ValueRange words) {
  auto pair = VectorType::get(2, builder.getF16Type());
  return llvm::map_to_vector(words, [&](Value word) -> Value {
    return isHalf ? LLVM::BitcastOp::create(builder, loc, pair, word) : word;
  });
}

void kvcache::emitSyncInstruction(OpBuilder &builder, Location loc, bool isHalf,
                                  ValueRange a, ValueRange b,
                                  MutableArrayRef<Value> acc) {
  Type f32 = builder.getF32Type();
  auto result = LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                                 {f32, f32, f32, f32});
  NVVM::MMATypes type = isHalf ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  Value product = NVVM::MmaOp::create(
      builder, loc, result, castWords(builder, loc, isHalf, a),
      castWords(builder, loc, isHalf, b), ValueRange(ArrayRef<Value>(acc)),
      ArrayRef<int64_t>{16, 8, kStep}, std::nullopt, std::nullopt,
      std::array{type, type},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [i, value] : llvm::enumerate(acc))
    value = LLVM::ExtractValueOp::create(builder, loc, product, i);
}

namespace {

/// Emits a product as `mma.sync.m16n8k16`.
class SyncProduct {
public:
  SyncProduct(OpBuilder &builder, FragmentMmaOp op, ValueRange a,
              MutableArrayRef<Value> acc)
      : b(builder, op.getLoc()), op(op), a(a), acc(acc),
        loader(
            builder, op.getLoc(), op.getB(),
            TeamThread::get(b, op.getType().getComplete(), op.getThread()).lane,
            getOrder(op)),
        isRowsFirst(getOrder(op) == MatrixOrder::RowsFirst) {}

  /// Queries stay in registers while keys pass, and products of values are
  /// added up in registers while these pass.
  void emit() {
    bool isKMajor = op.getMajorB() == Major::K;
    int64_t outer = isKMajor ? op.getSizeK() : op.getSizeN();
    int64_t inner = isKMajor ? op.getSizeN() : op.getSizeK();
    for (int64_t i = 0; i < outer; i += kStep)
      for (int64_t j = 0; j < inner; j += kStep)
        isKMajor ? multiply(/*k=*/i, /*n=*/j) : multiply(/*k=*/j, /*n=*/i);
  }

private:
  /// The order in which the words of an instruction lie side by side.
  static MatrixOrder getOrder(FragmentMmaOp op) {
    return op.getMajorB() == Major::K && !op.getRowsFirst()
               ? MatrixOrder::ColumnsFirst
               : MatrixOrder::RowsFirst;
  }

  /// 16 columns, of 16 columns of A.
  void multiply(int64_t k, int64_t n) {
    bool isKMajor = op.getMajorB() == Major::K;
    Value row = b.add(op.getBRow(), b.index(isKMajor ? n : k));
    Value column = b.add(op.getBColumn(), b.index(isKMajor ? k : n));
    SmallVector<Value> words = loader.load(row, column, !isKMajor);
    // Of keys, the matrix of the next columns of A follows, or that of the next
    // rows of the tile.
    int64_t step = isKMajor && isRowsFirst ? 2 : 1;
    for (int64_t half = 0; half < 2; ++half) {
      int64_t first = (3 - step) * half;
      multiply(k, n + 8 * half, words[first], words[first + step]);
    }
  }

  void multiply(int64_t k, int64_t n, Value low, Value high) {
    constexpr size_t words = 4, elements = 4;
    bool isHalf = op.getB().getType().getElementType().isF16();
    emitSyncInstruction(b.builder, b.loc, isHalf,
                        a.slice(k / kStep * words, words), {low, high},
                        acc.slice(n / 8 * elements, elements));
  }

  IndexBuilder b;
  FragmentMmaOp op;
  ValueRange a;
  MutableArrayRef<Value> acc;
  MatrixLoader loader;
  bool isRowsFirst;
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
    SmallVector<Value> acc =
        getAcc(rewriter, op, adaptor.getAccumulator(), complete);
    emit(rewriter, op, adaptor.getA(), acc);
    rewriter.replaceOp(op, join(rewriter, loc, complete, acc));
    return success();
  }

private:
  static void emit(OpBuilder &builder, FragmentMmaOp op, ValueRange a,
                   MutableArrayRef<Value> acc) {
    if (op.getPacked())
      PackedProduct(builder, op, a, acc).emit();
    else if (op.dequantizes())
      DequantProduct(builder, op, a, acc).emit();
    else
      SyncProduct(builder, op, a, acc).emit();
  }

  static SmallVector<Value> getAcc(OpBuilder &builder, FragmentMmaOp op,
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
