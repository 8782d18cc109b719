//===- PreventF2IMiscompile.cpp - Low bits of floats in ptxas -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVPTX has registers without types. It writes the low bits of a float from the
// register that an instruction of floats wrote:
//
//   add.rn.f32 %r2, %r1, 0f4B400000;
//   st.global.b8 [%rd1], %r2;
//
// ptxas takes such a register for a float, and converts the float to an integer
// (F2I.U8). A `mov` between makes the register one of bits.
//
//===----------------------------------------------------------------------===//

#include "PreventF2IMiscompile.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace llvm::PatternMatch;

namespace {

class FloatTruncations {
public:
  explicit FloatTruncations(llvm::Function &function) {
    SmallVector<llvm::Instruction *> roots(
        llvm::make_pointer_range(llvm::instructions(function)));
    for (llvm::Instruction *root : roots)
      keepFor(root);
  }

private:
  /// Keeps the bits of which an instruction takes only the low ones.
  void keepFor(llvm::Instruction *root) {
    if (auto *store = dyn_cast<llvm::StoreInst>(root)) {
      // The back end writes values that are not aligned in parts.
      unsigned part = 8 * store->getAlign().value();
      llvm::Value *value = store->getValueOperand();
      bool isSplit = value->getType()->getPrimitiveSizeInBits() > part;
      while (auto *cast = dyn_cast<llvm::BitCastInst>(value))
        value = cast->getOperand(0);
      if (isSplit && !isa<llvm::TruncInst>(value))
        keep(store->getOperandUse(0), part);
      return;
    }
    unsigned size = getLaneSize(root);
    bool isNarrow = isa<llvm::TruncInst, llvm::BitCastInst>(root) &&
                    size < getLaneSize(root->getOperand(0));
    // A condition comes from a mask.
    if (isNarrow && size > 1 && !isWhole(root))
      keep(root->getOperandUse(0), size);
  }

  /// Whether code takes whole registers of a value of narrow lanes, or lanes
  /// other than the low ones of a register. The back end gathers the bytes of
  /// a register by `prmt`, and shifts for higher lanes.
  static bool isWhole(llvm::Instruction *value) {
    auto *type = dyn_cast<llvm::FixedVectorType>(value->getType());
    bool isCast = isa<llvm::BitCastInst>(value);
    if (!isCast &&
        (!type || getLaneSize(value) != 8 || type->getNumElements() % 4 != 0))
      return false;
    unsigned lanes = getLaneSize(value->getOperand(0)) / getLaneSize(value);
    return llvm::all_of(value->users(), [&](llvm::User *user) {
      uint64_t lane = 0;
      if (isCast && match(user, m_ExtractElt(m_Value(), m_ConstantInt(lane))))
        return lane % lanes != 0;
      return isa<llvm::BitCastInst, llvm::StoreInst>(user);
    });
  }

  /// Puts moves between the floats of more than `size` bits that a value has
  /// the low bits of, and their use.
  void keep(llvm::Use &root, unsigned size) {
    SmallVector<llvm::Use *> uses{&root};
    while (!uses.empty()) {
      llvm::Use *use = uses.pop_back_val();
      llvm::Value *value = use->get();
      auto *instruction = dyn_cast<llvm::Instruction>(value);
      if (isFloat(value->getType())) {
        if (getLaneSize(value) > size)
          use->set(getKept(value));
      } else if (instruction && keepsLowBits(instruction) &&
                 visited.insert({instruction, size}).second) {
        llvm::append_range(uses,
                           llvm::make_pointer_range(instruction->operands()));
      }
    }
  }

  /// Whether the low bits of an instruction may be those of an operand, also
  /// after the back end has left out what other bits depend on.
  static bool keepsLowBits(llvm::Instruction *instruction) {
    switch (instruction->getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::And:
    case llvm::Instruction::BitCast:
    case llvm::Instruction::ExtractElement:
    case llvm::Instruction::Freeze:
    case llvm::Instruction::InsertElement:
    case llvm::Instruction::Mul:
    case llvm::Instruction::Or:
    case llvm::Instruction::PHI:
    case llvm::Instruction::SExt:
    case llvm::Instruction::Select:
    case llvm::Instruction::Shl:
    case llvm::Instruction::ShuffleVector:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::Xor:
    case llvm::Instruction::ZExt:
      return true;
    case llvm::Instruction::AShr:
    case llvm::Instruction::LShr:
      // Others are instructions between.
      return match(instruction->getOperand(1), m_ZeroInt()) ||
             match(instruction->getOperand(0), m_Shl(m_Value(), m_Value()));
    default:
      return false;
    }
  }

  /// Whether a type is one of floats in registers.
  static bool isFloat(llvm::Type *type) {
    llvm::Type *lane = type->getScalarType();
    return lane->isHalfTy() || lane->isBFloatTy() || lane->isFloatTy() ||
           lane->isDoubleTy();
  }

  static unsigned getLaneSize(llvm::Value *value) {
    return value->getType()->getScalarSizeInBits();
  }

  /// Floats whose bits ptxas does not recognize as bits of floats.
  llvm::Value *getKept(llvm::Value *floats) {
    // Constants have their bits in the code.
    if (isa<llvm::Constant>(floats))
      return floats;
    if (llvm::Value *known = kept.lookup(floats))
      return known;
    llvm::IRBuilder<> builder(floats->getContext());
    if (auto *argument = dyn_cast<llvm::Argument>(floats))
      builder.SetInsertPoint(
          argument->getParent()->getEntryBlock().getFirstInsertionPt());
    else
      builder.SetInsertPoint(
          *cast<llvm::Instruction>(floats)->getInsertionPointAfterDef());
    llvm::Value *moved = moveLanes(builder, floats);
    kept[floats] = kept[moved] = moved;
    return moved;
  }

  static llvm::Value *moveLanes(llvm::IRBuilder<> &builder,
                                llvm::Value *floats) {
    auto *vector = dyn_cast<llvm::FixedVectorType>(floats->getType());
    if (!vector)
      return move(builder, floats);
    llvm::Value *result = llvm::PoisonValue::get(vector);
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
      llvm::Value *moved =
          move(builder, builder.CreateExtractElement(floats, lane));
      result = builder.CreateInsertElement(result, moved, lane);
    }
    return result;
  }

  static llvm::Value *move(llvm::IRBuilder<> &builder, llvm::Value *value) {
    unsigned size = getLaneSize(value);
    llvm::Type *bits = builder.getIntNTy(size);
    const char *constraints = size == 16   ? "=h,h"
                              : size == 32 ? "=r,r"
                                           : "=l,l";
    auto *mov = llvm::InlineAsm::get(
        llvm::FunctionType::get(bits, bits, /*isVarArg=*/false),
        llvm::formatv("mov.b{0} $0, $1;", size).str(), constraints,
        /*hasSideEffects=*/false);
    llvm::CallInst *call =
        builder.CreateCall(mov, builder.CreateBitCast(value, bits));
    call->setDoesNotAccessMemory();
    call->setDoesNotThrow();
    return builder.CreateBitCast(call, value->getType());
  }

  llvm::DenseMap<llvm::Value *, llvm::Value *> kept;
  llvm::DenseSet<std::pair<llvm::Instruction *, unsigned>> visited;
};

} // namespace

void kvcache::preventF2IMiscompile(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      FloatTruncations truncations(function);
}
