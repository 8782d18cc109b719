//===- EmulatorCalls.cpp - Calls of the emulator from kernels -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatorCalls.h"
#include "kvcache/Emulator/ABI.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

EmulatorCalls::EmulatorCalls(RuntimeCalls &runtime, const Chip &chip,
                             bool isSanitized, bool isMetered)
    : runtime(runtime), chip(chip), isSanitized(isSanitized),
      isMetered(isMetered) {
  MLIRContext *context = runtime.getModule().getContext();
  pointerType = LLVM::LLVMPointerType::get(context);
  i1 = IntegerType::get(context, 1);
  i8 = IntegerType::get(context, 8);
  i16 = IntegerType::get(context, 16);
  i32 = IntegerType::get(context, 32);
  i64 = IntegerType::get(context, 64);
  f32 = Float32Type::get(context);
}

Value EmulatorCalls::call(Operation *op, StringRef function, Type resultType,
                          ValueRange operands) {
  OpBuilder builder(op);
  return call(builder, op, function, resultType, operands);
}

Value EmulatorCalls::call(OpBuilder &builder, Operation *op, StringRef function,
                          Type resultType, ValueRange operands) {
  return call(builder, op, op->getLoc(), op->getName().getStringRef(), function,
              resultType, operands);
}

Value EmulatorCalls::call(OpBuilder &builder, Operation *op, Location loc,
                          StringRef name, StringRef function, Type resultType,
                          ValueRange operands) {
  SmallVector<Value> all{getThread(op), getSite(builder, loc, name)};
  for (Value operand : operands) {
    // Pointers are addresses of the host, whatever they point to.
    if (auto type = dyn_cast<LLVM::LLVMPointerType>(operand.getType());
        type && type != pointerType)
      operand =
          LLVM::AddrSpaceCastOp::create(builder, loc, pointerType, operand);
    all.push_back(operand);
  }
  return runtime.call(builder, loc, function, resultType, all);
}

void EmulatorCalls::replaceByCall(Operation *op, StringRef function,
                                  ValueRange operands) {
  bool hasResult = op->getNumResults() == 1;
  Value result = call(
      op, function, hasResult ? op->getResult(0).getType() : Type(), operands);
  if (hasResult)
    op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

Value EmulatorCalls::getThread(Operation *op) {
  return op->getParentOfType<FunctionOpInterface>().getArgument(0);
}

Value EmulatorCalls::getSite(Operation *op) {
  OpBuilder builder(op);
  return getSite(builder, op->getLoc(), op->getName().getStringRef());
}

static std::string describePlace(Location loc) {
  if (FileLineColLoc position = findFileLoc(loc))
    return (position.getFilename().getValue() + ":" +
            Twine(position.getLine()) + ":" + Twine(position.getColumn()))
        .str();
  return "an unknown place";
}

std::pair<Value, Value>
EmulatorCalls::describeSite(OpBuilder &builder, Location loc, StringRef name) {
  return {runtime.getString(builder, loc, name),
          runtime.getString(builder, loc, describePlace(loc))};
}

Value EmulatorCalls::getSite(OpBuilder &builder, Location loc, StringRef name) {
  // An op of the source may have become several instructions, which the meter
  // distinguishes by their sites.
  LLVM::GlobalOp own;
  LLVM::GlobalOp &site =
      isMetered ? own : sites[(name + " " + describePlace(loc)).str()];
  if (!site)
    site = runtime.createStruct(loc, "kvcache_site", {pointerType, pointerType},
                                [&](FieldBuilder &fields, OpBuilder &inner) {
                                  auto [op, where] =
                                      describeSite(inner, loc, name);
                                  fields.set(op, 0);
                                  fields.set(where, 1);
                                });
  return LLVM::AddressOfOp::create(builder, loc, site);
}

/// Threads and clusters stay the same ones.
Value EmulatorCalls::loadAt(Operation *op, Value base, int64_t offset,
                            Type type) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value address =
      LLVM::GEPOp::create(builder, loc, pointerType, i8, base,
                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  return LLVM::LoadOp::create(builder, loc, type, address, /*alignment=*/0,
                              /*isVolatile=*/false, /*isNonTemporal=*/false,
                              /*isInvariant=*/true);
}

Value EmulatorCalls::loadField(Operation *op, int64_t offset, Type type) {
  return loadAt(op, getThread(op), offset, type);
}

Value EmulatorCalls::loadClusterField(Operation *op, int64_t offset,
                                      Type type) {
  Value cluster = loadField(op, offsetof(KVCacheThread, cluster), pointerType);
  return loadAt(op, cluster, offset, type);
}

Value EmulatorCalls::createSlot(Operation *op, Type type) {
  Block &entry = op->getParentOfType<FunctionOpInterface>().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  Value one = LLVM::ConstantOp::create(builder, op->getLoc(), i64, 1);
  constexpr unsigned alignment = 16;
  return LLVM::AllocaOp::create(builder, op->getLoc(), pointerType, type, one,
                                alignment);
}

Value EmulatorCalls::getI32(Operation *op, int64_t value) {
  OpBuilder builder(op);
  return LLVM::ConstantOp::create(builder, op->getLoc(), i32, value);
}

Value EmulatorCalls::getI64(Operation *op, int64_t value) {
  OpBuilder builder(op);
  return LLVM::ConstantOp::create(builder, op->getLoc(), i64, value);
}
