//===- KVCacheDialect.h - Types, attributes and interfaces ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHEDIALECT_H
#define KVCACHE_IR_KVCACHEDIALECT_H

#include "kvcache/IR/AttentionConfig.h"
#include "kvcache/TMA/TensorMap.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

#include <optional>

namespace mlir::kvcache {

class FragmentType;
class ParamsAttr;
class TMATileType;

/// The kind of a value in a bundle.
enum class PartKind {
  Blocks,         ///< base of the blocks, or of the window of a view
  NumPages,       ///< pages (or blocks of a continuous cache)
  NumLayers,      ///< layers of a collection
  RoleStride,     ///< elements from keys to values
  LayerStride,    ///< elements from a layer to the next
  PageStride,     ///< elements from a page to the next: S0
  HeadStride,     ///< elements from a head to the next, if open
  PageSize,       ///< tokens in a page, if known only at run time
  BlockTokens,    ///< tokens in a block of a continuous cache
  Lengths,        ///< base of the cache lengths
  Batch,          ///< sequences in the batch
  Table,          ///< base of the lookup table
  Columns,        ///< entries in a row of the lookup table
  TableStride,    ///< entries from a row of the lookup table to the next
  TableStarts,    ///< base of the starts of a `csr` table
  TableRows,      ///< base of the rows of the sequences in a `rows` table
  NumTableRows,   ///< rows of a `rows` table
  MaxSeqLength,   ///< longest prompt
  MaxCacheLength, ///< longest cache
  Scales,         ///< this and the next seven: the same parts of the scales
  ScalePages,
  ScaleRoleStride,
  ScaleLayerStride,
  ScalePageStride,
  ScaleHeadStride,
  ScaleTable,
  ScaleColumns,
  ScaleTableStride,
  TableEntry,  ///< base of the table entries of row indices
  RowsPerPage, ///< rows from a page to the next: S
  Row,         ///< the row of the first token of a page, once per page
  TileMemory,  ///< the memory of a tile
  TmemAddress, ///< the address of a tile in tensor memory
  Register,    ///< a register of a fragment
};

/// One value of the bundle that a cache type expands to.
struct Part {
  PartKind kind;
  Type type;
};

/// The name of a part in a kernel's parameter list, such as `page_stride`.
StringRef stringifyPartKind(PartKind kind);

/// The type of a stored element: `i8`, which holds two elements, for 4-bit
/// types, else the element type.
Type getStorageType(Type elementType);

/// The lane type of a scalar or vector type.
Type getLaneType(Type type);
/// The number of lanes of a vector type; 1 for a scalar type.
int64_t getNumLanes(Type type);
/// The scalar or vector type `type` with another lane type.
Type withLane(Type type, Type lane);

} // namespace mlir::kvcache

#include "kvcache/IR/KVCacheDialect.h.inc"
#include "kvcache/IR/KVCacheEnums.h.inc"

#include "kvcache/IR/KVCacheAttrInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "kvcache/IR/KVCacheAttrs.h.inc"

#include "kvcache/IR/KVCacheTypeInterfaces.h.inc"

#define GET_TYPEDEF_CLASSES
#include "kvcache/IR/KVCacheTypes.h.inc"

#include "kvcache/IR/KVCacheOpInterfaces.h.inc"

#endif // KVCACHE_IR_KVCACHEDIALECT_H
