//===- FloatsAsBits.cpp - Move floats as integers -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/Formats.h"
#include "kvcache/IR/KVCache.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_FLOATSASBITS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct FloatsAsBits : kvcache::impl::FloatsAsBitsBase<FloatsAsBits> {
  using FloatsAsBitsBase::FloatsAsBitsBase;

  void runOnOperation() override {
    if (!mayChange())
      return markAllAnalysesPreserved();
    if (failed(checkOnlyMoved()))
      return signalPassFailure();
    bool changed = false;
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](FloatType type) -> std::optional<Type> {
      if (!isMoved(type))
        return std::nullopt;
      changed = true;
      return getBits(type);
    });
    replacer.addReplacement([&](FloatAttr attr) -> std::optional<Attribute> {
      if (!isMoved(attr.getType()))
        return std::nullopt;
      changed = true;
      return IntegerAttr::get(getBits(attr.getType()),
                              attr.getValue().bitcastToAPInt());
    });
    replacer.addReplacement(
        [&](DenseElementsAttr attr) -> std::optional<Attribute> {
          if (!isMoved(attr.getElementType()))
            return std::nullopt;
          changed = true;
          return attr.bitcast(getBits(attr.getElementType()));
        });
    // Tiles are no vectors of their elements.
    replacer.addReplacement([](amx::TileType type) {
      return std::make_pair(Type(type), WalkResult::skip());
    });
    SmallVector<Instruction> instructions = findInstructions();
    getOperation()->walk([&](Operation *op) {
      if (isInstruction(op))
        return;
      // Keep the type attributes of NVVM conversions, which name the format.
      bool namesFormat = isa_and_present<NVVM::NVVMDialect>(op->getDialect());
      replacer.replaceElementsIn(op, /*replaceAttrs=*/!namesFormat,
                                 /*replaceLocs=*/false, /*replaceTypes=*/true);
    });
    for (const Instruction &instruction : instructions)
      addCasts(instruction, replacer);
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  /// An instruction of vectors that computes on floats, with its own types.
  struct Instruction {
    Operation *op;
    SmallVector<Type> operands, results;
  };

  static bool isInstruction(Operation *op) {
    return isa_and_present<x86vector::X86VectorDialect>(op->getDialect());
  }

  SmallVector<Instruction> findInstructions() {
    SmallVector<Instruction> found;
    getOperation()->walk([&](Operation *op) {
      if (isInstruction(op))
        found.push_back({op, llvm::to_vector(op->getOperandTypes()),
                         llvm::to_vector(op->getResultTypes())});
    });
    return found;
  }

  /// Casts between the integers and the types of an instruction.
  static void addCasts(const Instruction &instruction,
                       AttrTypeReplacer &replacer) {
    Operation *op = instruction.op;
    OpBuilder builder(op);
    for (auto [operand, type] :
         llvm::zip_equal(op->getOpOperands(), instruction.operands))
      if (operand.get().getType() != type)
        operand.set(vector::BitCastOp::create(builder, op->getLoc(), type,
                                              operand.get()));
    builder.setInsertionPointAfter(op);
    for (auto [result, type] :
         llvm::zip_equal(op->getResults(), instruction.results)) {
      Type bits = replacer.replace(type);
      if (bits == type)
        continue;
      auto cast =
          vector::BitCastOp::create(builder, op->getLoc(), bits, result);
      result.replaceAllUsesExcept(cast, cast);
    }
  }

  /// Whether an op of floats computes on them, or shows them as numbers.
  static bool computes(Operation *op) {
    if (isa_and_present<arith::ArithDialect, math::MathDialect>(
            op->getDialect()))
      return !isa<arith::BitcastOp, arith::ConstantOp, arith::SelectOp>(op);
    if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op))
      return atomic.getKind() != arith::AtomicRMWKind::assign;
    if (auto atomic = dyn_cast<LLVM::AtomicRMWOp>(op))
      return atomic.getBinOp() != LLVM::AtomicBinOp::xchg;
    // These take integers as well.
    return isa<vector::ContractionOp, vector::MultiDimReductionOp,
               vector::OuterProductOp, vector::PrintOp, vector::ReductionOp,
               vector::ScanOp, gpu::AllReduceOp, gpu::SubgroupReduceOp>(op) ||
           // These don't.
           isa<vector::FMAOp, LLVM::FAddOp, LLVM::FSubOp, LLVM::FMulOp,
               LLVM::FDivOp, LLVM::FRemOp, LLVM::FNegOp, LLVM::FCmpOp,
               LLVM::FPExtOp, LLVM::FPTruncOp, LLVM::FPToSIOp, LLVM::FPToUIOp,
               LLVM::SIToFPOp, LLVM::UIToFPOp>(op);
  }

  /// Rejects arithmetic on the floats, which would become arithmetic on their
  /// bits, and ops of ours that do what their element types say.
  LogicalResult checkOnlyMoved() {
    WalkResult result = getOperation()->walk([&](Operation *op) {
      bool isOurs =
          isa<kvcache::DequantizeOp, kvcache::MmaOp, kvcache::QuantizeOp,
              kvcache::TmemLoadOp, kvcache::TmemMmaOp, kvcache::TmemStoreOp>(
              op);
      if (!isOurs && !computes(op))
        return WalkResult::advance();
      SmallVector<Type> types(op->getOperandTypes());
      llvm::append_range(types, op->getResultTypes());
      auto *changed =
          llvm::find_if(types, [&](Type type) { return hasMoved(type); });
      if (changed == types.end())
        return WalkResult::advance();
      if (isOurs)
        op->emitOpError("is not lowered, and would have integers in ")
            << *changed;
      else
        op->emitOpError("computes on ")
            << getElementTypeOrSelf(*changed)
            << ", which has no lowering: extend to f32 first";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// Whether a value may have a type that this pass changes. No attribute of an
  /// op has one without such a value, except those of symbols.
  bool mayChange() {
    DenseMap<Type, bool> known;
    auto isMovedType = [&](Type type) {
      auto [entry, isNew] = known.try_emplace(type);
      if (isNew)
        entry->second = hasMoved(type);
      return entry->second;
    };
    WalkResult result = getOperation()->walk([&](Operation *op) {
      bool found = llvm::any_of(op->getResultTypes(), isMovedType);
      if (auto function = dyn_cast<FunctionOpInterface>(op))
        found |= isMovedType(function.getFunctionType());
      else
        found |= isa<SymbolOpInterface>(op);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          found |= llvm::any_of(block.getArgumentTypes(), isMovedType);
      return found ? WalkResult::interrupt() : WalkResult::advance();
    });
    return result.wasInterrupted();
  }

  /// Whether a type is, or has as a part, one that this pass changes.
  bool hasMoved(Type type) const {
    return type
        .walk([&](FloatType part) {
          return isMoved(part) ? WalkResult::interrupt()
                               : WalkResult::advance();
        })
        .wasInterrupted();
  }

  bool isMoved(Type type) const {
    return kvcache::hasUse(type, kvcache::FormatUse::Narrow) ||
           (bf16 && type.isBF16());
  }

  static Type getBits(Type type) {
    return IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth());
  }
};

} // namespace
