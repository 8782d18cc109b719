//===- CacheOperators.cpp - Cache operators of accesses and copies --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"
#include "kvcache/Support/CachePolicy.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CACHEOPERATORS
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Whether an address is known to be in global memory.
bool isGlobal(Value address) {
  unsigned space =
      cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace();
  if (space != static_cast<unsigned>(NVVM::NVVMMemorySpace::Generic))
    return space == static_cast<unsigned>(NVVM::NVVMMemorySpace::Global);
  auto argument = dyn_cast<BlockArgument>(getBasePointer(address));
  if (!argument || !argument.getOwner()->isEntryBlock())
    return false;
  // A pointer parameter of a kernel points to global memory.
  auto kernel = dyn_cast<LLVM::LLVMFuncOp>(argument.getOwner()->getParentOp());
  return kernel &&
         kernel->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()) &&
         !kernel.getArgAttr(argument.getArgNumber(),
                            LLVM::LLVMDialect::getByValAttrName());
}

/// The number of 32-bit registers that a value in memory fills; 0 if it does
/// not fill whole registers.
int64_t countRegisters(Type type) {
  Type lane = getElementTypeOrSelf(type);
  auto vector = dyn_cast<VectorType>(type);
  if (!lane.isIntOrFloat() || (vector && vector.isScalable()))
    return 0;
  int64_t bits = lane.getIntOrFloatBitWidth();
  if (vector)
    bits *= vector.getNumElements();
  return bits % 32 == 0 ? bits / 32 : 0;
}

/// The number of registers that one instruction of the access `op` can move.
template <typename OpTy> int64_t getWidth(OpTy op, Type type) {
  const Chip *chip = getTargetChip(op);
  uint64_t widest = chip && chip->has(Feature::Access256) ? 32 : 16;
  uint64_t alignment = op.getAlignment().value_or(
      DataLayout::closest(op).getTypeABIAlignment(type));
  uint64_t bytes = countRegisters(type) * 4;
  return std::min(widest, llvm::MinAlign(bytes, alignment)) / 4;
}

/// The reason why a nontemporal access of a value of `type` gets no cache
/// operator, or nothing if it gets one.
template <typename OpTy>
std::optional<StringRef> findObstacle(OpTy op, Type type) {
  if (op.getVolatile_() || op.getOrdering() != LLVM::AtomicOrdering::not_atomic)
    return "it is volatile or atomic";
  if (!isGlobal(op.getAddr()))
    return "its address may not be in global memory";
  if (countRegisters(type) == 0)
    return "its value does not fill whole registers";
  if (getWidth(op, type) == 0)
    return "it is aligned to less than 4 bytes";
  return std::nullopt;
}

/// Builds the instructions of an access, with `width` registers each.
class Instructions {
public:
  Instructions(Operation *op, Value address, Type type, int64_t width)
      : builder(op), loc(op->getLoc()), address(address), type(type),
        width(width), count(countRegisters(type)) {
    // Keep lanes of 8 and 16 bits in LLVM's register types, so that phis and
    // arithmetic do not split them.
    Type lane = getElementTypeOrSelf(type);
    unsigned bits = lane.getIntOrFloatBitWidth();
    bool isPacked = bits == 8 || bits == 16;
    lanes = isPacked ? 32 / bits : 1;
    if (!isPacked)
      lane = builder.getI32Type();
    all = VectorType::get(count * lanes, lane);
    single = isPacked ? VectorType::get(lanes, lane) : lane;
  }

  Value load(StringRef opcode, bool hasSideEffects) {
    Type results = width == 1 ? single
                              : LLVM::LLVMStructType::getLiteral(
                                    builder.getContext(),
                                    SmallVector<Type>(width, single));
    std::string text = (opcode + getSuffix() + " " + getRegisters(0) + ", [$" +
                        Twine(width) + "];")
                           .str();
    std::string constraints = repeat("=r,") + "l";
    Value value = LLVM::PoisonOp::create(builder, loc, all);
    for (int64_t first = 0; first < count; first += width) {
      Value read = createAsm(results, getPointer(first), text, constraints,
                             hasSideEffects);
      for (int64_t index = 0; index < width; ++index) {
        Value part = read;
        if (width > 1)
          part = LLVM::ExtractValueOp::create(builder, loc, read, index);
        value = insert(value, part, first + index);
      }
    }
    return builder.createOrFold<LLVM::BitcastOp>(loc, type, value);
  }

  void store(StringRef opcode, Value value) {
    std::string text =
        (opcode + getSuffix() + " [$0], " + getRegisters(1) + ";").str();
    std::string constraints = "l" + repeat(",r");
    value = builder.createOrFold<LLVM::BitcastOp>(loc, all, value);
    for (int64_t first = 0; first < count; first += width) {
      SmallVector<Value> operands{getPointer(first)};
      for (int64_t index = 0; index < width; ++index)
        operands.push_back(extract(value, first + index));
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

  /// The type suffix, such as `.v4.b32`.
  std::string getSuffix() const {
    return width == 1 ? ".b32" : ".v" + std::to_string(width) + ".b32";
  }

  /// The register list from operand `first` on, such as `{$0, $1, $2, $3}`.
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

  /// Returns `value` with `part` as register `index`.
  Value insert(Value value, Value part, int64_t index) {
    if (lanes > 1)
      return LLVM::vector_insert::create(builder, loc, all, value, part,
                                         index * lanes);
    return LLVM::InsertElementOp::create(builder, loc, value, part,
                                         getNumber(index));
  }

  /// Returns register `index` of `value`.
  Value extract(Value value, int64_t index) {
    if (lanes > 1)
      return LLVM::vector_extract::create(builder, loc, single, value,
                                          index * lanes);
    return LLVM::ExtractElementOp::create(builder, loc, value,
                                          getNumber(index));
  }

  Value getNumber(int64_t number) {
    return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), number);
  }

  /// Returns the address in global memory of register `first` of the value.
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
  Type type;
  int64_t width, count;
  /// The number of lanes of a register.
  int64_t lanes;
  /// The types of one register and of all registers.
  Type single;
  VectorType all;
};

/// Creates the instruction with a cache policy in place of an op without one.
void createCopy(NVVM::CpAsyncOp op, Eviction priority) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value policy = LLVM::ConstantOp::create(
      builder, loc, builder.getI64Type(),
      builder.getI64IntegerAttr(getCachePolicy(priority)));
  SmallVector<Value> operands{
      LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(), op.getDst()),
      op.getSrc()};
  std::string text =
      ("cp.async." + stringifyLoadCacheModifierKind(op.getModifier()) +
       ".shared.global.L2::cache_hint [$0], [$1], " + Twine(op.getSize()))
          .str();
  std::string constraints = "r,l";
  if (op.getCpSize()) {
    operands.push_back(op.getCpSize());
    text += ", $2, $3;";
    constraints += ",r,l";
  } else {
    text += ", $2;";
    constraints += ",l";
  }
  operands.push_back(policy);
  LLVM::InlineAsmOp::create(
      builder, loc, TypeRange(), operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, /*asm_dialect=*/{}, /*operand_attrs=*/{});
}

struct CacheOperators : kvcache::impl::CacheOperatorsBase<CacheOperators> {
  void runOnOperation() override {
    getOperation()->walk([this](Operation *op) {
      if (auto load = dyn_cast<LLVM::LoadOp>(op))
        rewrite(load);
      else if (auto store = dyn_cast<LLVM::StoreOp>(op))
        rewrite(store);
      else if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op))
        rewrite(copy);
    });
  }

private:
  /// Whether to rewrite an access of a value of `type`. A remark says why a
  /// nontemporal one is not.
  template <typename OpTy> bool isRewritten(OpTy op, Type type) {
    if (!op.getNontemporal())
      return false;
    if (std::optional<StringRef> obstacle = findObstacle(op, type)) {
      remark::missed(op.getLoc(), remark::RemarkOpts::name("cache operator")
                                      .category("kvcache-cache-operators"))
          << "nontemporal access gets no cache operator"
          << remark::reason("{0}", *obstacle);
      return false;
    }
    ++numRewritten;
    return true;
  }

  void rewrite(LLVM::LoadOp op) {
    Type type = op.getType();
    if (!isRewritten(op, type))
      return;
    bool invariant = isInvariant(op);
    Instructions instructions(op, op.getAddr(), type, getWidth(op, type));
    op.replaceAllUsesWith(instructions.load(
        invariant ? "ld.global.cs.nc" : "ld.global.cs", !invariant));
    op.erase();
  }

  void rewrite(LLVM::StoreOp op) {
    Type type = op.getValue().getType();
    if (!isRewritten(op, type))
      return;
    Instructions(op, op.getAddr(), type, getWidth(op, type))
        .store("st.global.cs", op.getValue());
    op.erase();
  }

  void rewrite(NVVM::CpAsyncOp op) {
    auto hint = op->getAttrOfType<EvictionAttr>(kL2HintAttr);
    if (!hint)
      return;
    createCopy(op, hint.getValue());
    op.erase();
    ++numRewritten;
  }
};

} // namespace
