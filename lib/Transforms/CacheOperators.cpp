//===- CacheOperators.cpp - Accesses that leave the caches to others ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/Chip.h"
#include "kvcache/Target/Pointers.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CACHEOPERATORS
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

constexpr int64_t kRegisterBytes = 4;

/// Whether an address is known to be in global memory.
bool isGlobal(Value address) {
  unsigned space =
      cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace();
  if (space != static_cast<unsigned>(NVVM::NVVMMemorySpace::Generic))
    return space == static_cast<unsigned>(NVVM::NVVMMemorySpace::Global);
  auto argument = dyn_cast<BlockArgument>(getBasePointer(address));
  if (!argument || !argument.getOwner()->isEntryBlock())
    return false;
  // What the host passes to a kernel by reference is there.
  auto kernel = dyn_cast<LLVM::LLVMFuncOp>(argument.getOwner()->getParentOp());
  return kernel &&
         kernel->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()) &&
         !kernel.getArgAttr(argument.getArgNumber(),
                            LLVM::LLVMDialect::getByValAttrName());
}

/// The 32-bit registers that a value in memory fills; 0 if it fills none.
int64_t countRegisters(Type type) {
  Type lane = getElementTypeOrSelf(type);
  auto vector = dyn_cast<VectorType>(type);
  if (!lane.isIntOrFloat() || (vector && vector.isScalable()))
    return 0;
  int64_t bits = lane.getIntOrFloatBitWidth();
  if (vector)
    bits *= vector.getNumElements();
  return bits % (8 * kRegisterBytes) == 0 ? bits / (8 * kRegisterBytes) : 0;
}

/// The registers that one instruction of the access `op` can move.
template <typename OpTy> int64_t getWidth(OpTy op, Type type) {
  const Chip *chip = getTargetChip(op);
  uint64_t widest = chip && chip->has(Feature::Access256) ? 32 : 16;
  uint64_t alignment = op.getAlignment().value_or(
      DataLayout::closest(op).getTypeABIAlignment(type));
  uint64_t bytes = countRegisters(type) * kRegisterBytes;
  return std::min(widest, llvm::MinAlign(bytes, alignment)) / kRegisterBytes;
}

/// Whether the pass rewrites an access of a value of `type`.
template <typename OpTy> bool isNontemporal(OpTy op, Type type) {
  return op.getNontemporal() && !op.getVolatile_() &&
         op.getOrdering() == LLVM::AtomicOrdering::not_atomic &&
         isGlobal(op.getAddr()) && countRegisters(type) > 0 &&
         getWidth(op, type) > 0;
}

/// Writes the instructions of an access, of `width` registers each.
class Instructions {
public:
  Instructions(Operation *op, Value address, int64_t width)
      : builder(op), loc(op->getLoc()), address(address), width(width) {}

  Value load(StringRef opcode, Type type, bool hasSideEffects) {
    int64_t count = countRegisters(type);
    Type i32 = builder.getI32Type();
    Type results =
        width == 1 ? i32
                   : LLVM::LLVMStructType::getLiteral(
                         builder.getContext(), SmallVector<Type>(width, i32));
    std::string text = (opcode + getSuffix() + " " + getRegisters(0) + ", [$" +
                        Twine(width) + "];")
                           .str();
    std::string constraints = repeat("=r,") + "l";
    Value words =
        LLVM::PoisonOp::create(builder, loc, VectorType::get(count, i32));
    for (int64_t first = 0; first < count; first += width) {
      Value read = createAsm(results, getPointer(first), text, constraints,
                             hasSideEffects);
      for (int64_t index = 0; index < width; ++index) {
        Value word = read;
        if (width > 1)
          word = LLVM::ExtractValueOp::create(builder, loc, read, index);
        words = LLVM::InsertElementOp::create(builder, loc, words, word,
                                              getNumber(first + index));
      }
    }
    return LLVM::BitcastOp::create(builder, loc, type, words);
  }

  void store(StringRef opcode, Value value) {
    int64_t count = countRegisters(value.getType());
    std::string text =
        (opcode + getSuffix() + " [$0], " + getRegisters(1) + ";").str();
    std::string constraints = "l" + repeat(",r");
    Value words = LLVM::BitcastOp::create(
        builder, loc, VectorType::get(count, builder.getI32Type()), value);
    for (int64_t first = 0; first < count; first += width) {
      SmallVector<Value> operands{getPointer(first)};
      for (int64_t index = 0; index < width; ++index)
        operands.push_back(LLVM::ExtractElementOp::create(
            builder, loc, words, getNumber(first + index)));
      createAsm({}, operands, text, constraints, /*hasSideEffects=*/true);
    }
  }

private:
  Value createAsm(TypeRange results, ValueRange operands, StringRef text,
                  StringRef constraints, bool hasSideEffects) {
    return LLVM::InlineAsmOp::create(
               builder, loc, results, operands, text, constraints,
               hasSideEffects, /*is_align_stack=*/false,
               LLVM::TailCallKind::None, /*asm_dialect=*/{},
               /*operand_attrs=*/{})
        .getRes();
  }

  /// `.v4.b32`.
  std::string getSuffix() const {
    return width == 1 ? ".b32" : ".v" + std::to_string(width) + ".b32";
  }

  /// `{$0, $1, $2, $3}`, from operand `first` on.
  std::string getRegisters(int64_t first) const {
    auto numbers =
        llvm::map_range(llvm::seq(first, first + width), [](int64_t number) {
          return "$" + std::to_string(number);
        });
    std::string list = llvm::join(numbers, ", ");
    return width == 1 ? list : "{" + list + "}";
  }

  std::string repeat(StringRef constraint) const {
    std::string all;
    for (int64_t index = 0; index < width; ++index)
      all += constraint;
    return all;
  }

  Value getNumber(int64_t number) {
    return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), number);
  }

  /// The address of register `first` of the value, in global memory.
  Value getPointer(int64_t first) {
    Value pointer = address;
    if (first > 0)
      pointer = LLVM::GEPOp::create(
          builder, loc, address.getType(), builder.getI32Type(), address,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(first)});
    auto global = LLVM::LLVMPointerType::get(
        builder.getContext(),
        static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
    return LLVM::AddrSpaceCastOp::create(builder, loc, global, pointer);
  }

  OpBuilder builder;
  Location loc;
  Value address;
  int64_t width;
};

struct CacheOperators : kvcache::impl::CacheOperatorsBase<CacheOperators> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto load = dyn_cast<LLVM::LoadOp>(op))
        rewrite(load);
      else if (auto store = dyn_cast<LLVM::StoreOp>(op))
        rewrite(store);
    });
  }

private:
  static void rewrite(LLVM::LoadOp op) {
    Type type = op.getType();
    if (!isNontemporal(op, type))
      return;
    bool invariant = isInvariant(op);
    Instructions instructions(op, op.getAddr(), getWidth(op, type));
    op.replaceAllUsesWith(instructions.load(
        invariant ? "ld.global.cs.nc" : "ld.global.cs", type, !invariant));
    op.erase();
  }

  static void rewrite(LLVM::StoreOp op) {
    Type type = op.getValue().getType();
    if (!isNontemporal(op, type))
      return;
    Instructions(op, op.getAddr(), getWidth(op, type))
        .store("st.global.cs", op.getValue());
    op.erase();
  }
};

} // namespace
