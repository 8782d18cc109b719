//===- KVCacheInterfaces.td - Interfaces of cache types and accesses -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHEINTERFACES_TD
#define KVCACHE_IR_KVCACHEINTERFACES_TD

include "mlir/IR/OpBase.td"

def KVCache_LayoutAttrInterface : AttrInterface<"LayoutAttrInterface"> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    Where the elements of a page, or its scales, lie. Strides count stored
    elements. The stride of the elements of a head is 1.
  }];
  let methods = [
    InterfaceMethod<"The distance from a token to the next.",
      "int64_t", "getTokenStride">,
    InterfaceMethod<"The distance from a head to the next; "
      "`ShapedType::kDynamic` if it is known only at run time; 0 if the cache "
      "has one head.",
      "int64_t", "getHeadStride">,
    InterfaceMethod<"The number of tokens whose scales are interleaved; 1 if "
      "they are not.",
      "int64_t", "getInterleave", (ins), "", "return 1;">,
    InterfaceMethod<"The distance from keys to values; 0 if it is as aligned as "
      "tokens and heads.",
      "int64_t", "getRoleStride", (ins), "", "return 0;">
  ];
}

def KVCache_ExpandableTypeInterface : TypeInterface<"ExpandableTypeInterface"> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    A type that `convert-kvcache-to-memref` expands into several values, the
    parts of its bundle. A part has a type and a kind, which is unique in the
    bundle.
  }];
  let methods = [
    InterfaceMethod<
      "The parts that a value of this type expands to, in order. Pointers are "
      "rank-0 memrefs. Counts and table strides are `i32`. Strides between "
      "pages and layers are `index`, because they may exceed 2^31 elements.",
      "::llvm::SmallVector<::mlir::kvcache::Part>", "getParts">
  ];
}

def KVCache_CacheTypeInterface : TypeInterface<"CacheTypeInterface",
    [KVCache_ExpandableTypeInterface]> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    A collection, a view of the keys or values of one layer, or a view of their
    scales.
  }];
  let methods = [
    InterfaceMethod<"The element type of the cache, or of the scales.",
      "::mlir::Type", "getElementType">,
    InterfaceMethod<"Heads, head size, and whether the cache is latent (MLA).",
      "::mlir::kvcache::ParamsAttr", "getParams">,
    InterfaceMethod<"Whether tokens lie in pages of a lookup table, and not in "
      "one block of rows per sequence.",
      "bool", "isPaged", (ins), "", "return true;">,
    InterfaceMethod<"The page size in tokens; `ShapedType::kDynamic` if it is "
      "known only at run time, as for the blocks of a continuous cache.",
      "int64_t", "getPageSize">,
    InterfaceMethod<"The element type of the scales; null if not quantized.",
      "::mlir::Type", "getScale">,
    InterfaceMethod<"The number of elements that share a scale; 0 if not "
      "quantized.",
      "int64_t", "getGranularity">,
    InterfaceMethod<"The type of the zero points, which are beside the scales; "
      "null if there are none.",
      "::mlir::Type", "getZeroPoint", (ins), "", "return {};">,
    InterfaceMethod<"The number of consecutive tokens that share a scale.",
      "int64_t", "getTokenGranularity", (ins), "", "return 1;">,
    InterfaceMethod<"The layout of pages; null for packed rows.",
      "::mlir::kvcache::LayoutAttrInterface", "getLayout", (ins), "",
      "return {};">,
    InterfaceMethod<"The layout of the scales of a page; null for packed rows.",
      "::mlir::kvcache::LayoutAttrInterface", "getScaleLayout", (ins), "",
      "return {};">,
    InterfaceMethod<"How the lookup table gives the pages of a sequence.",
      "::mlir::kvcache::TableKind", "getTable", (ins), "",
      "return ::mlir::kvcache::TableKind::Dense;">,
    InterfaceMethod<"Whether this is a collection of all layers.",
      "bool", "isCollection">,
    InterfaceMethod<"The number of elements of a head per lane of an access: "
      "1, or the granularity in a view of scales.",
      "int64_t", "getElementsPerLane", (ins), "", "return 1;">,
    InterfaceMethod<"The number of tokens that share a row: 1, or the token "
      "granularity in a view of scales.",
      "int64_t", "getTokensPerRow", (ins), "", "return 1;">,
    InterfaceMethod<"The numbers that are kept for a lane: 1, or 2 in a view of "
      "scales with zero points, which follow the scales of a head.",
      "int64_t", "getNumbersPerLane", (ins), "", "return 1;">,
    InterfaceMethod<"Whether the view has elements or scales: not that of "
      "the scales of a cache without scales.",
      "bool", "hasMemory", (ins), "", "return true;">
  ];
  let extraSharedClassDeclaration = [{
    bool hasStaticPageSize() const {
      return !::mlir::ShapedType::isDynamic($_type.getPageSize());
    }
    /// The rows of a page; `ShapedType::kDynamic` if they are known only at run
    /// time.
    int64_t getRowsPerPage() const {
      return hasStaticPageSize()
                 ? $_type.getPageSize() / $_type.getTokensPerRow()
                 : $_type.getPageSize();
    }
    bool isQuantized() const { return static_cast<bool>($_type.getScale()); }
    bool hasZeroPoints() const {
      return static_cast<bool>($_type.getZeroPoint());
    }
    /// Whether elements mean nothing without a static scale: integers of 8
    /// bits that have no scales.
    bool needsStaticScale() const {
      return !isQuantized() && $_type.getElementType().isSignlessInteger(8);
    }
    /// Whether accesses may convert elements: floats of at most 32 bits,
    /// integers of 8 bits, and those that have scales.
    bool convertsElements() const {
      auto type = ::llvm::dyn_cast<::mlir::FloatType>($_type.getElementType());
      return isQuantized() || needsStaticScale() ||
             (type && type.getWidth() <= 32);
    }
    int64_t getNumHeads() const { return $_type.getParams().getNumHeads(); }
    int64_t getHeadSize() const { return $_type.getParams().getHeadSize(); }
    bool isMLA() const { return $_type.getParams().getIsMla(); }
    /// 2 for keys and values, 1 for the one latent cache of MLA.
    int64_t getNumKV() const { return isMLA() ? 1 : 2; }
    /// The type of a stored element: `i8`, which holds two elements, for 4-bit
    /// caches, else the element type.
    ::mlir::Type getStorageType() const {
      return ::mlir::kvcache::getStorageType($_type.getElementType());
    }
    /// Lanes per stored element: 2 for 4-bit caches, else 1.
    int64_t getLanesPerStored() const {
      return getStorageType().getIntOrFloatBitWidth() /
             $_type.getElementType().getIntOrFloatBitWidth();
    }
    /// Lanes per head: its elements, or its scales.
    int64_t getLanesPerHead() const {
      return ::llvm::divideCeil(getHeadSize(), $_type.getElementsPerLane());
    }
    /// Stored elements per head: half the head size for 4-bit caches. Zero
    /// points follow the scales of a head.
    int64_t getStoredHeadSize() const {
      return getStoredLanesPerHead() * $_type.getNumbersPerLane();
    }
    /// Stored elements that hold the lanes of a head, without zero points.
    int64_t getStoredLanesPerHead() const {
      return getLanesPerHead() / getLanesPerStored();
    }
    /// The distance from a token of a page to the next, in stored elements.
    int64_t getTokenStride() const {
      auto layout = $_type.getLayout();
      return layout ? layout.getTokenStride()
                    : getNumHeads() * getStoredHeadSize();
    }
    /// The distance from a head to the next, in stored elements;
    /// `ShapedType::kDynamic` if it is known only at run time.
    int64_t getHeadStride() const {
      auto layout = $_type.getLayout();
      return layout && getNumHeads() > 1 ? layout.getHeadStride()
                                         : getStoredHeadSize();
    }
    bool hasOpenHeadStride() const {
      return ::mlir::ShapedType::isDynamic(getHeadStride());
    }
    /// The number of tokens whose scales are interleaved in a view of scales; 1
    /// otherwise.
    int64_t getInterleave() const {
      auto layout = $_type.getLayout();
      return layout ? layout.getInterleave() : 1;
    }
    /// Whether each token has a row in a view of scales; true for others.
    bool hasRowsOfTokens() const {
      return getInterleave() == 1 && $_type.getTokensPerRow() == 1;
    }
    /// Whether each token has a row of scales: they are neither interleaved nor
    /// shared by tokens.
    bool hasScaleRowsOfTokens() const {
      auto layout = $_type.getScaleLayout();
      return (!layout || layout.getInterleave() == 1) &&
             $_type.getTokenGranularity() == 1;
    }
    /// Scales per head and token.
    int64_t getNumGroups() const {
      return ::llvm::divideCeil(getHeadSize(), $_type.getGranularity());
    }
  }];
}

def KVCache_NamedOperandsOpInterface
    : OpInterface<"NamedOperandsOpInterface"> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    The names of operands at run time, for languages in which no class is
    generated for each op. All ops of the dialect have them.
  }];
  let methods = [
    StaticInterfaceMethod<"The names, in order. That of an operand that may be "
      "missing ends in '?', and of one that may be several in '*'.",
      "::llvm::ArrayRef<::llvm::StringLiteral>", "getOperandNames">
  ];
}

def KVCache_BundleOpInterface : OpInterface<"BundleOpInterface"> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    An op that bundles the tensors of a cache: into a collection of all layers,
    or into a view of one layer's keys or values.
  }];
  let methods = [
    InterfaceMethod<"The pages, or the blocks of a continuous cache: [NB, D, "
      "NL, P, H, E], or [NB, P, H, E] of one layer's keys or values.",
      "::mlir::TypedValue<::mlir::MemRefType>", "getBlocks">,
    InterfaceMethod<"The tokens in the cache of each sequence.",
      "::mlir::TypedValue<::mlir::MemRefType>", "getCacheLengths">,
    InterfaceMethod<"The page ids of each sequence.",
      "::mlir::TypedValue<::mlir::MemRefType>", "getLookupTable">,
    InterfaceMethod<"The longest prompt of the batch.",
      "::mlir::Value", "getMaxSeqLength">,
    InterfaceMethod<"The longest cache of the batch.",
      "::mlir::Value", "getMaxCacheLength">,
    InterfaceMethod<"The scales, or null.",
      "::mlir::TypedValue<::mlir::MemRefType>", "getScales", (ins), "",
      "return {};">,
    InterfaceMethod<"The page ids of the scales, if they have their own table, "
      "or null.",
      "::mlir::TypedValue<::mlir::MemRefType>", "getScalesLookupTable", (ins),
      "", "return {};">,
    InterfaceMethod<"Where the lookup table has the entries of each sequence, "
      "or null for a dense table.",
      "::mlir::TypedValue<::mlir::MemRefType>", "getTableIndex", (ins), "",
      "return {};">,
    InterfaceMethod<"The collection or the view.",
      "::mlir::TypedValue<::mlir::kvcache::CacheTypeInterface>", "getBundle",
      (ins), "", [{
        return ::llvm::cast<
            ::mlir::TypedValue<::mlir::kvcache::CacheTypeInterface>>(
            $_op->getResult(0));
      }]>
  ];
}

def KVCache_LayerViewOpInterface : OpInterface<"LayerViewOpInterface"> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    An op that makes a view of one layer's keys or values from a collection.
  }];
  let methods = [
    InterfaceMethod<"Keys or values.",
      "::mlir::kvcache::Role", "getRole">,
    InterfaceMethod<"The cache of all layers.",
      "::mlir::Value", "getCollection">,
    InterfaceMethod<"The layer.",
      "::mlir::Value", "getLayer">
  ];
}

def KVCache_TiledOpInterface : OpInterface<"TiledOpInterface"> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    An op on whole caches with hints that say how the threads of a GPU share its
    work. They change no result, and nothing on the CPU.
  }];
  let methods = [
    InterfaceMethod<"The threads of a block, at most, or nothing where the "
      "expansion chooses.",
      "::std::optional<uint64_t>", "getBlockThreads">,
    InterfaceMethod<"The heads that a thread loads before it stores one, at "
      "most, or nothing where the expansion chooses.",
      "::std::optional<uint64_t>", "getHeadsPerThread", (ins), "",
      "return ::std::nullopt;">
  ];
}

def KVCache_AccessOpInterface : OpInterface<"AccessOpInterface"> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    An op that addresses a cache, its scales, or both by sequence, head, token
    and element. Each of these may be absent. Passes use this interface instead
    of lists of op names.
  }];
  let methods = [
    InterfaceMethod<"The cache.",
      "::mlir::TypedValue<::mlir::kvcache::CacheTypeInterface>",
      "getAccessedCache">,
    InterfaceMethod<"The sequence in the batch, or null.",
      "::mlir::Value", "getAccessedBatch", (ins), "", "return {};">,
    InterfaceMethod<"The head, or null.",
      "::mlir::Value", "getAccessedHead", (ins), "", "return {};">,
    InterfaceMethod<"The first token in the sequence, or null.",
      "::mlir::Value", "getAccessedToken", (ins), "", "return {};">,
    InterfaceMethod<"The first element of the head, or null.",
      "::mlir::Value", "getAccessedElement", (ins), "", "return {};">,
    InterfaceMethod<"Whether the op addresses the scales of the cache.",
      "bool", "accessesScales", (ins), "", "return false;">,
    InterfaceMethod<"Whether the op addresses the elements of the cache, and "
      "not only its scales.",
      "bool", "accessesElements", (ins), "", "return true;">,
    InterfaceMethod<"The number of consecutive elements of a head that the op "
      "accesses, or of scales if it accesses only scales.",
      "int64_t", "getAccessedWidth", (ins), "", "return 1;">,
    InterfaceMethod<"The number of consecutive tokens that the op accesses.",
      "int64_t", "getAccessedTokens", (ins), "", "return 1;">,
    InterfaceMethod<"The optional operand with the page id, if the page was "
      "looked up before; `nullopt` for an op without such an operand.",
      "::std::optional<::mlir::MutableOperandRange>", "getPageOperand",
      (ins), "", "return ::std::nullopt;">,
    InterfaceMethod<"The same operand for the page of the scales.",
      "::std::optional<::mlir::MutableOperandRange>", "getScalePageOperand",
      (ins), "", "return ::std::nullopt;">
  ];
}

def KVCache_TileCopyOpInterface : OpInterface<"TileCopyOpInterface",
    [KVCache_AccessOpInterface]> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    An op that starts the copy of rows of a cache into a tile. Each row is that
    of a token, or that of a row id. All threads of the block execute the op.
  }];
  let methods = [
    InterfaceMethod<"The tile.",
      "::mlir::TypedValue<::mlir::kvcache::TileType>", "getTile">,
    InterfaceMethod<"The number of rows to read, or null for all rows of the "
      "tile. The op fills the other rows with zeros.",
      "::mlir::Value", "getValid", (ins), "", "return {};">,
    InterfaceMethod<"The row ids, one for each row of the tile, or null if the "
      "rows are those of consecutive tokens.",
      "::mlir::TypedValue<::mlir::MemRefType>", "getRowIds",
      (ins), "", "return {};">,
    InterfaceMethod<"A number of which the first token is a multiple, as the "
      "author asserts.",
      "int64_t", "getTokenAlignment", (ins), "", "return 1;">,
    InterfaceMethod<"The kinds of copies that can do this op, the best first.",
      "::llvm::ArrayRef<::mlir::kvcache::CopyKind>", "getCopyKinds">,
    InterfaceMethod<"How the copy is done, if that is chosen.",
      "::std::optional<::mlir::kvcache::CopyKind>", "getCopy">,
    InterfaceMethod<"Chooses how the copy is done.",
      "void", "setCopy",
      (ins "::std::optional<::mlir::kvcache::CopyKind>":$kind)>,
    InterfaceMethod<"Whether each block of a cluster loads a share of the tile "
      "for all of them.",
      "bool", "isMulticast", (ins), "", "return false;">,
    InterfaceMethod<"How long what is read stays in the L2 cache, or null.",
      "::mlir::kvcache::EvictionAttr", "getL2HintAttr">,
    InterfaceMethod<"The descriptor of the view, or null.",
      "::mlir::TypedValue<::mlir::kvcache::TMATileType>", "getDescriptor">,
    InterfaceMethod<"The descriptor of the view as an optional operand.",
      "::mlir::MutableOperandRange", "getDescriptorMutable">,
    InterfaceMethod<"The token to wait for.",
      "::mlir::TypedValue<::mlir::kvcache::TokenType>", "getTokenOfCopy">
  ];
  let extraSharedClassDeclaration = [{
    /// The type of the view, and the layout of the tile.
    ::mlir::kvcache::CacheTypeInterface getViewType() {
      return $_op.getAccessedCache().getType();
    }
    ::mlir::kvcache::tma::TileLayout getTileLayout() {
      return $_op.getTile().getType().getLayout();
    }
  }];
}

def KVCache_TensorMapOpInterface : OpInterface<"TensorMapOpInterface"> {
  let cppNamespace = "::mlir::kvcache";
  let description = [{
    An op that creates the descriptor (tensor map) of a view.
  }];
  let methods = [
    InterfaceMethod<"The view.",
      "::mlir::TypedValue<::mlir::kvcache::CacheTypeInterface>",
      "getViewed">,
    InterfaceMethod<"The geometry of the descriptor, whose extents are those "
      "of the view.",
      "::mlir::kvcache::tma::OpenTensorMap", "getTensorMap">,
    InterfaceMethod<"The descriptor.",
      "::mlir::TypedValue<::mlir::kvcache::TMATileType>",
      "getDescriptor">
  ];
}

#endif // KVCACHE_IR_KVCACHEINTERFACES_TD
