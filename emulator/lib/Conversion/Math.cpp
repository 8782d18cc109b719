//===- Math.cpp - Conversions and approximations as calls -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MathCalls.h"

#include "Families.h"
#include "kvcache/Emulator/Math.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Value kvcache::getBits(Operation *op, Value value, EmulatorCalls &calls) {
  OpBuilder builder(op);
  Type type = value.getType();
  auto vector = dyn_cast<VectorType>(type);
  unsigned width =
      vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
             : type.getIntOrFloatBitWidth();
  Type bits = builder.getIntegerType(width);
  if (type != bits)
    value = LLVM::BitcastOp::create(builder, op->getLoc(), bits, value);
  if (width == 32)
    return value;
  return LLVM::ZExtOp::create(builder, op->getLoc(), calls.i32, value);
}

Value kvcache::getFromBits(Operation *op, Value bits, Type type,
                           EmulatorCalls &calls) {
  OpBuilder builder(op);
  auto vector = dyn_cast<VectorType>(type);
  unsigned width =
      vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
             : type.getIntOrFloatBitWidth();
  if (width < 32)
    bits = LLVM::TruncOp::create(builder, op->getLoc(),
                                 builder.getIntegerType(width), bits);
  if (bits.getType() != type)
    bits = LLVM::BitcastOp::create(builder, op->getLoc(), type, bits);
  return bits;
}

/// Replaces an op by a call that returns the bits of its result.
static void replaceByBits(Operation *op, StringRef function,
                          ValueRange operands, EmulatorCalls &calls) {
  Value bits = calls.call(op, function, calls.i32, operands);
  Type type = op->getResult(0).getType();
  op->getResult(0).replaceAllUsesWith(getFromBits(op, bits, type, calls));
  op->erase();
}

void kvcache::replaceByConvertF32x2(Operation *op, Value high, Value low,
                                    Value random, uint32_t format,
                                    uint32_t flags, EmulatorCalls &calls) {
  if (!random)
    random = calls.getI32(op, 0);
  replaceByBits(
      op, "kvcacheEmulatorConvertF32x2",
      {high, low, random, calls.getI32(op, format), calls.getI32(op, flags)},
      calls);
}

void kvcache::replaceByConvertF32x4(Operation *op, Value source, Value random,
                                    uint32_t format, uint32_t flags,
                                    EmulatorCalls &calls) {
  OpBuilder builder(op);
  SmallVector<Value> operands;
  for (int64_t i = 0; i < 4; ++i)
    operands.push_back(LLVM::ExtractElementOp::create(
        builder, op->getLoc(), source, calls.getI32(op, i)));
  operands.push_back(random);
  operands.push_back(calls.getI32(op, format));
  operands.push_back(calls.getI32(op, flags));
  replaceByBits(op, "kvcacheEmulatorConvertF32x4", operands, calls);
}

void kvcache::replaceByConvertPair(Operation *op, Value pair, uint32_t from,
                                   uint32_t to, uint32_t flags,
                                   EmulatorCalls &calls) {
  replaceByBits(op, "kvcacheEmulatorConvertPair",
                {getBits(op, pair, calls), calls.getI32(op, from),
                 calls.getI32(op, to), calls.getI32(op, flags)},
                calls);
}

/// The KVCacheFormat of a type.
static FailureOr<uint32_t> getFormat(Operation *op, Type type) {
  auto format = llvm::TypeSwitch<Type, std::optional<uint32_t>>(type)
                    .Case([](Float8E4M3FNType) { return KVCacheFormatE4M3; })
                    .Case([](Float8E5M2Type) { return KVCacheFormatE5M2; })
                    .Case([](Float6E2M3FNType) { return KVCacheFormatE2M3; })
                    .Case([](Float6E3M2FNType) { return KVCacheFormatE3M2; })
                    .Case([](Float4E2M1FNType) { return KVCacheFormatE2M1; })
                    .Case([](Float8E8M0FNUType) { return KVCacheFormatE8M0; })
                    .Default(std::nullopt);
  if (format)
    return *format;
  return op->emitOpError("of ") << type << " has no lowering for the emulator";
}

/// The flags of a conversion that rounds, saturates and clamps like this.
static FailureOr<uint32_t> getFlags(Operation *op, NVVM::FPRoundingMode mode,
                                    bool saturates, bool relu) {
  uint32_t flags = (saturates ? KVCacheConvertSaturate : 0) |
                   (relu ? KVCacheConvertRelu : 0);
  switch (mode) {
  case NVVM::FPRoundingMode::NONE:
  case NVVM::FPRoundingMode::RN:
    return flags | KVCacheConvertNearestEven;
  case NVVM::FPRoundingMode::RNA:
    return flags | KVCacheConvertNearestAway;
  case NVVM::FPRoundingMode::RZ:
    return flags | KVCacheConvertZero;
  case NVVM::FPRoundingMode::RP:
    return flags | KVCacheConvertUp;
  case NVVM::FPRoundingMode::RS:
    return flags | KVCacheConvertStochastic;
  case NVVM::FPRoundingMode::RM:
    break;
  }
  return op->emitOpError("rounding down has no lowering for the emulator");
}

static bool saturates(NVVM::SaturationMode mode) {
  return mode == NVVM::SaturationMode::SATFINITE;
}

namespace {

/// Lowers the conversions of NVVM. A lowering gives true, or fails.
class ConversionLowering {
public:
  explicit ConversionLowering(EmulatorCalls &calls) : calls(calls) {}

  FailureOr<bool> lower(Operation *op) {
    using Result = FailureOr<bool>;
    return llvm::TypeSwitch<Operation *, Result>(op)
        .Case([&](NVVM::ConvertFloatToTF32Op op) { return lowerTF32(op); })
        .Case<NVVM::ConvertF32x2ToF4x2Op, NVVM::ConvertF32x2ToF6x2Op>(
            [&](auto op) {
              return lowerF32x2(op, op.getA(), op.getB(), Value(),
                                getFormat(op, op.getDstTy()),
                                NVVM::FPRoundingMode::RN, /*isFinite=*/true,
                                op.getRelu());
            })
        .Case([&](NVVM::ConvertF32x2ToF8x2Op op) {
          return lowerF32x2(op, op.getA(), op.getB(), Value(),
                            getFormat(op, op.getDstTy()), op.getRnd(),
                            saturates(op.getSat()), op.getRelu());
        })
        .Case([&](NVVM::ConvertF32x2ToF16x2Op op) {
          return lowerF32x2(op, op.getSrcHi(), op.getSrcLo(),
                            op.getRandomBits(), KVCacheFormatF16, op.getRnd(),
                            saturates(op.getSat()), op.getRelu());
        })
        .Case([&](NVVM::ConvertF32x2ToBF16x2Op op) {
          return lowerF32x2(op, op.getSrcHi(), op.getSrcLo(),
                            op.getRandomBits(), KVCacheFormatBF16, op.getRnd(),
                            saturates(op.getSat()), op.getRelu());
        })
        .Case<NVVM::ConvertF32x4ToF8x4Op, NVVM::ConvertF32x4ToF6x4Op,
              NVVM::ConvertF32x4ToF4x4Op>(
            [&](auto op) { return lowerF32x4(op); })
        .Case([&](NVVM::ConvertF16x2ToF8x2Op op) {
          return lowerPair(
              op, op.getA(), KVCacheFormatF16, getFormat(op, op.getDstTy()),
              NVVM::FPRoundingMode::RN, /*isFinite=*/true, op.getRelu());
        })
        .Case([&](NVVM::ConvertBF16x2ToF8x2Op op) {
          return lowerPair(op, op.getA(), KVCacheFormatBF16,
                           getFormat(op, op.getDstTy()), op.getRnd(),
                           saturates(op.getSat()), /*relu=*/false);
        })
        .Case<NVVM::ConvertF8x2ToF16x2Op, NVVM::ConvertF6x2ToF16x2Op,
              NVVM::ConvertF4x2ToF16x2Op>([&](auto op) {
          return lowerPair(op, op.getSrc(), getFormat(op, op.getSrcType()),
                           KVCacheFormatF16, NVVM::FPRoundingMode::RN,
                           /*isFinite=*/false, op.getRelu());
        })
        .Case([&](NVVM::ConvertF8x2ToBF16x2Op op) {
          return lowerPair(op, op.getSrc(), getFormat(op, op.getSrcType()),
                           KVCacheFormatBF16, NVVM::FPRoundingMode::RN,
                           /*isFinite=*/false, /*relu=*/false);
        })
        .Default(Result(false));
  }

private:
  FailureOr<bool> lowerTF32(NVVM::ConvertFloatToTF32Op op) {
    FailureOr<uint32_t> flags =
        getFlags(op, op.getRnd(), saturates(op.getSat()), op.getRelu());
    if (failed(flags))
      return failure();
    calls.replaceByCall(op, "kvcacheEmulatorConvertTF32",
                        {op.getSrc(), calls.getI32(op, *flags)});
    return true;
  }

  FailureOr<bool> lowerF32x2(Operation *op, Value high, Value low, Value random,
                             FailureOr<uint32_t> format,
                             NVVM::FPRoundingMode mode, bool isFinite,
                             bool relu) {
    FailureOr<uint32_t> flags = getFlags(op, mode, isFinite, relu);
    if (failed(format) || failed(flags))
      return failure();
    replaceByConvertF32x2(op, high, low, random, *format, *flags, calls);
    return true;
  }

  template <typename OpTy> FailureOr<bool> lowerF32x4(OpTy op) {
    FailureOr<uint32_t> format = getFormat(op, op.getDstTy());
    FailureOr<uint32_t> flags = getFlags(op, NVVM::FPRoundingMode::RS,
                                         /*saturates=*/true, op.getRelu());
    if (failed(format) || failed(flags))
      return failure();
    replaceByConvertF32x4(op, op.getSrc(), op.getRbits(), *format, *flags,
                          calls);
    return true;
  }

  FailureOr<bool> lowerPair(Operation *op, Value pair, FailureOr<uint32_t> from,
                            FailureOr<uint32_t> to, NVVM::FPRoundingMode mode,
                            bool isFinite, bool relu) {
    FailureOr<uint32_t> flags = getFlags(op, mode, isFinite, relu);
    if (failed(from) || failed(to) || failed(flags))
      return failure();
    replaceByConvertPair(op, pair, *from, *to, *flags, calls);
    return true;
  }

  EmulatorCalls &calls;
};

} // namespace

//===----------------------------------------------------------------------===//
// Other ops of NVVM
//===----------------------------------------------------------------------===//

static void lowerPermute(NVVM::PermuteOp op, EmulatorCalls &calls) {
  Value high = op.getHi() ? op.getHi() : calls.getI32(op, 0);
  calls.replaceByCall(op, "kvcacheEmulatorPermute",
                      {op.getLo(), high, op.getSelector(),
                       calls.getI32(op, static_cast<int64_t>(op.getMode()))});
}

/// A vector of integers as one of i32.
static Value extend(OpBuilder &builder, Location loc, Value vector,
                    NVVM::DotAccumulateType type) {
  Type wide = cast<VectorType>(vector.getType()).clone(builder.getI32Type());
  if (type == NVVM::DotAccumulateType::SIGNED)
    return LLVM::SExtOp::create(builder, loc, wide, vector);
  return LLVM::ZExtOp::create(builder, loc, wide, vector);
}

/// PTX ISA, dp4a and dp2a: `b` has as many elements as `a`.
template <typename OpTy>
static void lowerDotAccumulate(OpTy op, Value b, EmulatorCalls &calls) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value products = LLVM::MulOp::create(
      builder, loc, extend(builder, loc, op.getA(), op.getAType()),
      extend(builder, loc, b, op.getBType()));
  Value sum =
      LLVM::vector_reduce_add::create(builder, loc, calls.i32, products);
  op.getResult().replaceAllUsesWith(
      LLVM::AddOp::create(builder, loc, sum, op.getC()).getResult());
  op.erase();
}

static void lowerDotAccumulate(NVVM::DotAccumulate2WayOp op,
                               EmulatorCalls &calls) {
  OpBuilder builder(op);
  SmallVector<int32_t> half =
      op.getBHi() ? SmallVector<int32_t>{2, 3} : SmallVector<int32_t>{0, 1};
  Value b = LLVM::ShuffleVectorOp::create(builder, op.getLoc(), op.getB(),
                                          op.getB(), half);
  lowerDotAccumulate(op, b, calls);
}

/// rcp.approx.ftz.f is an intrinsic of the same name.
static void lowerReciprocal(NVVM::RcpApproxFtzF32Op op, EmulatorCalls &calls) {
  OpBuilder builder(op);
  auto intrinsic = LLVM::CallIntrinsicOp::create(
      builder, op.getLoc(), op.getType(),
      builder.getStringAttr("llvm.nvvm.rcp.approx.ftz.f"), op->getOperands());
  op.replaceAllUsesWith(intrinsic->getResult(0));
  op.erase();
  bool isLowered = lowerArithmeticIntrinsic(intrinsic, calls);
  assert(isLowered && "the intrinsic is known");
  (void)isLowered;
}

/// The operation of the runtime that an atomic on floats is.
static std::optional<uint32_t> getAtomicOperation(LLVM::AtomicBinOp operation) {
  switch (operation) {
  case LLVM::AtomicBinOp::fadd:
    return KVCacheAtomicAdd;
  case LLVM::AtomicBinOp::fsub:
    return KVCacheAtomicSub;
  case LLVM::AtomicBinOp::fmin:
    return KVCacheAtomicMin;
  case LLVM::AtomicBinOp::fmax:
    return KVCacheAtomicMax;
  case LLVM::AtomicBinOp::fminimum:
    return KVCacheAtomicMinimum;
  case LLVM::AtomicBinOp::fmaximum:
    return KVCacheAtomicMaximum;
  default:
    return std::nullopt;
  }
}

/// bf16 has no atomics on the host.
static FailureOr<bool> lowerAtomic(LLVM::AtomicRMWOp op, EmulatorCalls &calls) {
  Type type = op.getVal().getType();
  if (!getElementTypeOrSelf(type).isBF16() ||
      op.getBinOp() == LLVM::AtomicBinOp::xchg)
    return false;
  auto vector = dyn_cast<VectorType>(type);
  int64_t lanes = vector ? vector.getNumElements() : 1;
  std::optional<uint32_t> operation = getAtomicOperation(op.getBinOp());
  if (!operation || lanes > 2)
    return op.emitOpError("on ") << type << " has no lowering for the emulator";
  replaceByBits(op, "kvcacheEmulatorAtomicBF16",
                {op.getPtr(), getBits(op, op.getVal(), calls),
                 calls.getI32(op, lanes), calls.getI32(op, *operation)},
                calls);
  return true;
}

FailureOr<bool> kvcache::lowerMathOp(Operation *op, EmulatorCalls &calls) {
  using Result = FailureOr<bool>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](NVVM::PermuteOp op) {
        lowerPermute(op, calls);
        return true;
      })
      .Case([&](NVVM::DotAccumulate4WayOp op) {
        lowerDotAccumulate(op, op.getB(), calls);
        return true;
      })
      .Case([&](NVVM::DotAccumulate2WayOp op) {
        lowerDotAccumulate(op, calls);
        return true;
      })
      .Case([&](NVVM::RcpApproxFtzF32Op op) {
        lowerReciprocal(op, calls);
        return true;
      })
      .Case([&](LLVM::AtomicRMWOp op) { return lowerAtomic(op, calls); })
      .Case([&](LLVM::CallIntrinsicOp op) {
        return lowerArithmeticIntrinsic(op, calls) ||
               lowerConversionIntrinsic(op, calls);
      })
      .Case([&](LLVM::CallOp op) { return lowerLibdeviceCall(op, calls); })
      .Default(
          [&](Operation *op) { return ConversionLowering(calls).lower(op); });
}
