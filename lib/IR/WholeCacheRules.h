//===- WholeCacheRules.h - Common rules of ops on whole caches --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IR_WHOLECACHERULES_H
#define KVCACHE_LIB_IR_WHOLECACHERULES_H

#include "RegionRules.h"

#include "kvcache/IR/SplitOps.h"

#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::kvcache {

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// The effects of an op that reads dense memrefs, writes its `outs`, and reads
/// or writes caches. Those of caches are on the default resource: other ops
/// reach the same memory by other values.
void addWholeCacheEffects(DestinationStyleOpInterface op, bool readsCache,
                          bool writesCache, Effects &effects);

/// The types of those outputs that are tensors, which an op has results of; an
/// output may be null.
SmallVector<Type> getTensorTypes(ValueRange outputs);

/// Checks that the last two sizes of a memref are packed.
LogicalResult verifyPacked(Operation *op, StringRef name, Type type);

/// Checks that the last two sizes of `type` are static and those given, and
/// packed if it is a memref.
LogicalResult verifyDense(Operation *op, StringRef name, Type type,
                          int64_t heads, int64_t elements);

/// Checks such sizes of rows whose heads may be any distance apart: the
/// elements of a head are contiguous.
LogicalResult verifyRows(Operation *op, StringRef name, Type type,
                         int64_t heads, int64_t elements);

/// Checks that values agree in a size that they have in common: each with the
/// number of its dimension, -1 for the last one; values may be null.
LogicalResult verifyCommonSize(Operation *op, StringRef name,
                               ArrayRef<std::pair<Value, int64_t>> dimensions);

/// Checks that a value has a number for each sequence of `row_offsets`, as far
/// as sizes are static; it may be null.
LogicalResult verifyBatch(Operation *op, StringRef name, Value numbers,
                          Value rowOffsets);

/// Checks that a memref is in the default memory space.
LogicalResult verifyDefaultSpace(Operation *op, StringRef name,
                                 MemRefType type);

/// Checks that a memref that is written is no other operand. Other memrefs that
/// share memory are found at run time, by Python's functions.
LogicalResult verifyApart(Operation *op, NamedValue written,
                          ArrayRef<NamedValue> others);

/// Checks that no two elements of a memref that is written share memory, as far
/// as sizes and strides are static; a size that is not may be above 1.
LogicalResult verifyElementsApart(Operation *op, ArrayRef<NamedValue> written);

/// Checks that results are those of the inits that are tensors.
LogicalResult verifyResults(DestinationStyleOpInterface op);

/// Checks that a static scale suits its cache.
LogicalResult verifyStaticScale(Operation *op, StringRef name, Value scale,
                                Value cache);

/// Checks that a scale is for rows of fp8, and has one number or their heads.
LogicalResult verifyScaleOfRows(Operation *op, StringRef name, Value scale,
                                StringRef rowsName, Value rows);

/// Checks that an op has no attributes of earlier versions, which its parser
/// makes others of; `attributes` names these.
LogicalResult verifyNoEarlierAttributes(Operation *op,
                                        ArrayRef<StringRef> names,
                                        StringRef attributes);

/// Checks that the workspace of a sequence has less than 2^63 bytes.
LogicalResult verifyWorkspaceBytes(Operation *op, const WorkspaceShape &shape);

/// Checks that `row_offsets` may have the number of a batch, that a workspace
/// is contiguous and in the default memory space, and its size for splits of
/// `out`.
LogicalResult verifySplitMemory(Operation *op, Value workspace,
                                Value rowOffsets, Value out, SplitAttr split);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_WHOLECACHERULES_H
