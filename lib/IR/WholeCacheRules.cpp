//===- WholeCacheRules.cpp - Common rules of ops on whole caches ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WholeCacheRules.h"

#include "kvcache/IR/KVCacheDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::addWholeCacheEffects(DestinationStyleOpInterface op,
                                   bool readsCache, bool writesCache,
                                   Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
  if (readsCache)
    effects.emplace_back(MemoryEffects::Read::get());
  if (writesCache)
    effects.emplace_back(MemoryEffects::Write::get());
}

SmallVector<Type> kvcache::getTensorTypes(ValueRange outputs) {
  SmallVector<Type> types;
  for (Value output : outputs)
    if (output && isa<RankedTensorType>(output.getType()))
      types.push_back(output.getType());
  return types;
}

/// Checks that the last two sizes of `type` are static and those given.
static LogicalResult verifyHeads(Operation *op, StringRef name, Type type,
                                 int64_t heads, int64_t elements) {
  ArrayRef<int64_t> sizes = cast<ShapedType>(type).getShape().take_back(2);
  if (sizes[0] == heads && sizes[1] == elements)
    return success();
  auto print = [](int64_t size) {
    return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
  };
  return op->emitOpError() << "expects '" << name << "' to have " << heads
                           << " heads of " << elements << " elements, got "
                           << print(sizes[0]) << " of " << print(sizes[1]);
}

LogicalResult kvcache::verifyPacked(Operation *op, StringRef name, Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.getRank() < 2)
    return success();
  SmallVector<int64_t> strides;
  int64_t offset, rank = memref.getRank();
  if (succeeded(memref.getStridesAndOffset(strides, offset)) &&
      strides[rank - 1] == 1 &&
      strides[rank - 2] == memref.getDimSize(rank - 1))
    return success();
  return op->emitOpError() << "expects the heads and elements of '" << name
                           << "' to be packed, got " << type;
}

LogicalResult kvcache::verifyDense(Operation *op, StringRef name, Type type,
                                   int64_t heads, int64_t elements) {
  return success(succeeded(verifyHeads(op, name, type, heads, elements)) &&
                 succeeded(verifyPacked(op, name, type)));
}

LogicalResult kvcache::verifyRows(Operation *op, StringRef name, Type type,
                                  int64_t heads, int64_t elements) {
  if (failed(verifyHeads(op, name, type, heads, elements)))
    return failure();
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.isLastDimUnitStride())
    return success();
  return op->emitOpError() << "expects the elements of a head of '" << name
                           << "' to be contiguous, got " << type;
}

LogicalResult
kvcache::verifyCommonSize(Operation *op, StringRef name,
                          ArrayRef<std::pair<Value, int64_t>> dimensions) {
  int64_t common = ShapedType::kDynamic;
  for (auto [value, dimension] : dimensions) {
    if (!value)
      continue;
    auto type = cast<ShapedType>(value.getType());
    int64_t size =
        type.getDimSize(dimension < 0 ? type.getRank() - 1 : dimension);
    if (ShapedType::isDynamic(size) || size == common)
      continue;
    if (!ShapedType::isDynamic(common))
      return op->emitOpError() << "expects operands with one number of " << name
                               << ", got " << common << " and " << size;
    common = size;
  }
  return success();
}

LogicalResult kvcache::verifyBatch(Operation *op, StringRef name, Value numbers,
                                   Value rowOffsets) {
  if (!numbers)
    return success();
  auto type = cast<ShapedType>(numbers.getType()),
       offsets = cast<ShapedType>(rowOffsets.getType());
  if (!type.hasStaticShape() || !offsets.hasStaticShape() ||
      type.getDimSize(0) + 1 == offsets.getDimSize(0))
    return success();
  return op->emitOpError() << "expects '" << name
                           << "' to have a number for each sequence of "
                           << "'row_offsets', got " << type << " and "
                           << offsets;
}

LogicalResult kvcache::verifyDefaultSpace(Operation *op, StringRef name,
                                          MemRefType type) {
  if (!type.getMemorySpace())
    return success();
  return op->emitOpError() << "expects '" << name
                           << "' in the default memory space, got " << type;
}

LogicalResult kvcache::verifyApart(Operation *op, NamedValue written,
                                   ArrayRef<NamedValue> others) {
  auto [name, output] = written;
  if (!output || !isa<MemRefType>(output.getType()))
    return success();
  for (auto [other, value] : others)
    if (value == output)
      return op->emitOpError()
             << "expects '" << name << "' to share no memory with '" << other
             << "', got one memref for both";
  return success();
}

/// Whether each stride passes the elements of the dimensions with smaller ones.
static bool hasElementsApart(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (llvm::is_contained(type.getShape(), 0))
    return true;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return true;
  SmallVector<std::pair<int64_t, int64_t>> dimensions;
  for (auto [stride, size] : llvm::zip_equal(strides, type.getShape()))
    if (size != 1 && !ShapedType::isDynamic(stride))
      dimensions.emplace_back(std::abs(stride), size);
  llvm::sort(dimensions);
  // Strides may be any 64 bits.
  APInt last = APInt::getZero(128);
  for (auto [stride, size] : dimensions) {
    APInt step(128, stride);
    if (step.ule(last))
      return false;
    last += step * (ShapedType::isDynamic(size) ? 1 : size - 1);
  }
  return true;
}

LogicalResult kvcache::verifyElementsApart(Operation *op,
                                           ArrayRef<NamedValue> written) {
  for (auto [name, value] : written) {
    auto type = value ? dyn_cast<MemRefType>(value.getType()) : MemRefType();
    if (type && !hasElementsApart(type))
      return op->emitOpError() << "expects the elements of '" << name
                               << "' to share no memory, got " << type;
  }
  return success();
}

LogicalResult kvcache::verifyResults(DestinationStyleOpInterface op) {
  SmallVector<Type> expected = getTensorTypes(ValueRange(op.getDpsInits()));
  if (!expected.empty() &&
      static_cast<int64_t>(expected.size()) != op.getNumDpsInits())
    return op->emitOpError("expects 'outs' to be all tensors or all memrefs");
  if (llvm::equal(expected, op->getResultTypes()))
    return success();
  return op->emitOpError()
         << "expects a result for each of 'outs' that is a tensor";
}

LogicalResult kvcache::verifyStaticScale(Operation *op, StringRef name,
                                         Value scale, Value cache) {
  if (!cache)
    return scale ? op->emitOpError() << "expects values for '" << name << "'"
                 : success();
  auto type = cast<CacheTypeInterface>(cache.getType());
  if (!scale && type.needsStaticScale())
    return op->emitOpError() << "expects '" << name << "' for a cache of "
                             << type.getElementType() << " without scales";
  if (!scale)
    return success();
  if (type.isQuantized()
          ? type.hasZeroPoints()
          : !type.convertsElements() ||
                type.getElementType().getIntOrFloatBitWidth() != 8)
    return op->emitOpError() << "expects '" << name << "' only for a cache "
                             << "with scales and no zero points, or of fp8 or "
                             << "i8";
  auto perHead = dyn_cast<ShapedType>(scale.getType());
  if (perHead && perHead.getDimSize(0) != type.getNumHeads())
    return op->emitOpError() << "expects '" << name << "' to have the "
                             << type.getNumHeads() << " heads of its cache";
  return success();
}

LogicalResult kvcache::verifyScaleOfRows(Operation *op, StringRef name,
                                         Value scale, StringRef rowsName,
                                         Value rows) {
  if (!scale)
    return success();
  auto type = cast<ShapedType>(rows.getType());
  if (type.getElementTypeBitWidth() != 8)
    return op->emitOpError() << "expects '" << name << "' only for '"
                             << rowsName << "' of fp8, got " << type;
  auto perHead = dyn_cast<ShapedType>(scale.getType());
  if (perHead && perHead.getDimSize(0) != type.getDimSize(1))
    return op->emitOpError()
           << "expects '" << name << "' to have the " << type.getDimSize(1)
           << " heads of '" << rowsName << "', got " << perHead;
  return success();
}

LogicalResult kvcache::verifyNoEarlierAttributes(Operation *op,
                                                 ArrayRef<StringRef> names,
                                                 StringRef attributes) {
  for (StringRef name : names)
    if (op->hasAttr(name))
      return op->emitOpError("has no attribute '")
             << name << "': its fields are in " << attributes;
  return success();
}

LogicalResult kvcache::verifyWorkspaceBytes(Operation *op,
                                            const WorkspaceShape &shape) {
  if (llvm::isUInt<63>(shape.getBytes()))
    return success();
  return op->emitOpError("expects the workspace of a sequence to have less "
                         "than 2^63 bytes");
}

LogicalResult kvcache::verifySplitMemory(Operation *op, Value workspace,
                                         Value rowOffsets, Value out,
                                         SplitAttr split) {
  auto type = cast<MemRefType>(workspace.getType());
  auto rows = cast<ShapedType>(out.getType()),
       offsets = cast<ShapedType>(rowOffsets.getType());
  if (offsets.getDimSize(0) == 0)
    return op->emitOpError("expects 'row_offsets' to have at least one "
                           "element, got ")
           << offsets;
  if (!type.getLayout().isIdentity())
    return op->emitOpError("expects 'workspace' to be contiguous, got ")
           << type;
  if (failed(verifyDefaultSpace(op, "workspace", type)))
    return failure();
  return verifyWorkspaceBytes(
      op, WorkspaceShape::get(rows.getDimSize(1), rows.getDimSize(2), split));
}
