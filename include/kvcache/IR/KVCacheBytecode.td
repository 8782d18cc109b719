//===- KVCacheBytecode.td - Types and attributes in bytecode -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHEBYTECODE_TD
#define KVCACHE_IR_KVCACHEBYTECODE_TD

include "mlir/IR/BytecodeBase.td"

// Later versions must read the bytes that earlier versions wrote. The position
// of an encoding in the lists below is its code. To change an encoding, add a
// new one at the end of its list; keep the old one for reading, with
// `printerPredicate = "false"`.

/// Encodes an enum as its number, which the reader checks.
class Enum<string enum> :
  WithParser <"succeeded(readEnum($_reader, $_var, symbolize" # enum # "))",
  WithBuilder<"$_args",
  WithPrinter<"$_writer.writeVarInt(static_cast<uint64_t>($_getter))",
  WithType   <enum>>>>;
def Swizzle : Enum<"Swizzle">;
def Major : Enum<"Major">;
def Eviction : Enum<"Eviction">;
def CopyKind : Enum<"CopyKind">;
def TableKind : Enum<"TableKind">;
def FragmentLayout : Enum<"FragmentLayout">;
def Schedule : Enum<"Schedule">;

/// Encodes a list as its length and its elements.
class Elements<string type, string writer> :
  WithParser <"succeeded(readElements($_reader, $_var))",
  WithBuilder<"$_args",
  WithPrinter<"$_writer." # writer # "($_getter)",
  WithType   <"SmallVector<" # type # ">">>>>;
def TypeElements : Elements<"Type", "writeTypes">;
def SignedVarIntElements : Elements<"int64_t", "writeSignedVarInts">;

// Run the same verifiers on bytecode as on text.
defvar build = "getChecked<$_resultType>(reader, context, $_args)";

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def ParamsAttr : DialectAttribute<(attr
  SignedVarInt:$num_heads,
  SignedVarInt:$head_size,
  Bool:$is_mla
)> {
  let cBuilder = build;
}
def LayoutAttr : DialectAttribute<(attr
  SignedVarInt:$tokenStride,
  SignedVarInt:$headStride
)> {
  let printerPredicate = "$_val.getInterleave() == 1 && !$_val.getRoleStride()";
}
def InterleavedLayoutAttr : DialectAttribute<(attr
  SignedVarInt:$tokenStride,
  SignedVarInt:$headStride,
  SignedVarInt:$interleave
)> {
  let cType = "LayoutAttr";
  let printerPredicate = "$_val.getInterleave() != 1 && !$_val.getRoleStride()";
}
def RoleLayoutAttr : DialectAttribute<(attr
  SignedVarInt:$tokenStride,
  SignedVarInt:$headStride,
  SignedVarInt:$interleave,
  SignedVarInt:$roleStride
)> {
  let cType = "LayoutAttr";
  let printerPredicate = "$_val.getRoleStride() != 0";
}
def SwizzleAttr : DialectAttribute<(attr Swizzle:$value)>;
def MajorAttr : DialectAttribute<(attr Major:$value)>;
def EvictionAttr : DialectAttribute<(attr Eviction:$value)>;
def CopyKindAttr : DialectAttribute<(attr CopyKind:$value)>;
def ScheduleAttr : DialectAttribute<(attr Schedule:$value)>;
def SplitAttr : DialectAttribute<(attr
  SignedVarInt:$keys,
  SignedVarInt:$max,
  SignedVarInt:$rows
)> {
  let cBuilder = build;
}
def AttentionConfigAttr : DialectAttribute<(attr SignedVarIntElements:$numbers)> {
  let cBuilder = build;
}

def KVCacheAttributes : DialectAttributes<"KVCache"> {
  let elems = [ParamsAttr, SwizzleAttr, MajorAttr, EvictionAttr, LayoutAttr,
               CopyKindAttr, InterleavedLayoutAttr, RoleLayoutAttr,
               SplitAttr, AttentionConfigAttr, ScheduleAttr];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class PlainPaged<string type> : DialectType<(type
  Type:$elementType,
  ParamsAttr:$params,
  SignedVarInt:$pageSize
)> {
  let cType = type;
  let cBuilder = "getChecked<$_resultType>(reader, context, $_args, "
                 "/*scale=*/::mlir::Type(), /*granularity=*/int64_t(0), "
                 "/*layout=*/LayoutAttrInterface(), "
                 "/*scaleLayout=*/LayoutAttrInterface(), TableKind::Dense, "
                 "/*zeroPoint=*/::mlir::Type(), /*tokenGranularity=*/int64_t(1))";
  let printerPredicate = "!$_val.getScale() && !hasLayoutOrTable($_val)";
}
class QuantizedPaged<string type> : DialectType<(type
  Type:$elementType,
  ParamsAttr:$params,
  SignedVarInt:$pageSize,
  Type:$scale,
  SignedVarInt:$granularity
)> {
  let cType = type;
  let cBuilder = "getChecked<$_resultType>(reader, context, $_args, "
                 "/*layout=*/LayoutAttrInterface(), "
                 "/*scaleLayout=*/LayoutAttrInterface(), TableKind::Dense, "
                 "/*zeroPoint=*/::mlir::Type(), /*tokenGranularity=*/int64_t(1))";
  let printerPredicate = "$_val.getScale() && !hasLayoutOrTable($_val) && "
                         "!isGrouped($_val)";
}
/// A type that may be absent: whether it is there, and then the type.
def OptionalType :
  WithParser <"succeeded(readOptionalType($_reader, $_var))",
  WithBuilder<"$_args",
  WithPrinter<"writeOptionalType($_writer, $_getter)",
  WithType   <"Type">>>>;
def OptionalLayout :
  WithParser <"succeeded($_reader.readOptionalAttribute($_var))",
  WithBuilder<"$_args",
  WithPrinter<"$_writer.writeOptionalAttribute($_getter)",
  WithType   <"LayoutAttrInterface">>>>;
class LaidOutPaged<string type> : DialectType<(type
  Type:$elementType,
  ParamsAttr:$params,
  SignedVarInt:$pageSize,
  OptionalType:$scale,
  SignedVarInt:$granularity,
  OptionalLayout:$layout,
  OptionalLayout:$scaleLayout,
  TableKind:$table
)> {
  let cType = type;
  let cBuilder = "getChecked<$_resultType>(reader, context, $_args, "
                 "/*zeroPoint=*/::mlir::Type(), /*tokenGranularity=*/int64_t(1))";
  let printerPredicate = "hasLayoutOrTable($_val) && !isGrouped($_val)";
}
class GroupedPaged<string type> : DialectType<(type
  Type:$elementType,
  ParamsAttr:$params,
  SignedVarInt:$pageSize,
  OptionalType:$scale,
  SignedVarInt:$granularity,
  OptionalLayout:$layout,
  OptionalLayout:$scaleLayout,
  TableKind:$table,
  OptionalType:$zeroPoint,
  SignedVarInt:$tokenGranularity
)> {
  let cType = type;
  let cBuilder = build;
  let printerPredicate = "isGrouped($_val)";
}
def PagedCollectionType : PlainPaged<"PagedCollectionType">;
def QuantizedPagedCollectionType : QuantizedPaged<"PagedCollectionType">;
def PagedCacheType : PlainPaged<"PagedCacheType">;
def QuantizedPagedCacheType : QuantizedPaged<"PagedCacheType">;
def LaidOutPagedCollectionType : LaidOutPaged<"PagedCollectionType">;
def LaidOutPagedCacheType : LaidOutPaged<"PagedCacheType">;
def GroupedPagedCollectionType : GroupedPaged<"PagedCollectionType">;
def GroupedPagedCacheType : GroupedPaged<"PagedCacheType">;

let cBuilder = build in {
def ContinuousCollectionType : DialectType<(type
  Type:$elementType,
  ParamsAttr:$params
)>;
def ContinuousCacheType : DialectType<(type
  Type:$elementType,
  ParamsAttr:$params
)>;
def ScalesType : DialectType<(type Type:$cache)>;
def RowIndicesType : DialectType<(type
  SignedVarInt:$rows,
  SignedVarInt:$pageSize
)>;
def TileType : DialectType<(type
  SignedVarInt:$rows,
  SignedVarInt:$columns,
  Type:$elementType,
  Swizzle:$swizzle
)>;
def TmemTileType : DialectType<(type
  SignedVarInt:$rows,
  SignedVarInt:$columns,
  Type:$elementType
)>;
def PipeType : DialectType<(type
  SignedVarInt:$stages,
  TypeElements:$tiles,
  SignedVarInt:$producers
)>;
def TMATileType : DialectType<(type
  SignedVarIntElements:$box,
  Type:$elementType,
  Swizzle:$swizzle,
  SignedVarInt:$l2Promotion
)>;
}
def FragmentType : DialectType<(type
  SignedVarIntElements:$shape,
  Type:$elementType,
  FragmentLayout:$layout,
  Bool:$partial
)> {
  let cBuilder = build;
}
def InFlightType : DialectType<(type
  SignedVarIntElements:$shape,
  Type:$elementType,
  FragmentLayout:$layout
)> {
  let cBuilder = build;
}
def TokenType : DialectType<(type)>;

def KVCacheTypes : DialectTypes<"KVCache"> {
  let elems = [
    PagedCollectionType, QuantizedPagedCollectionType, PagedCacheType,
    QuantizedPagedCacheType, ContinuousCollectionType, ContinuousCacheType,
    ScalesType, RowIndicesType, TileType, TokenType, PipeType, TMATileType,
    LaidOutPagedCollectionType, LaidOutPagedCacheType,
    GroupedPagedCollectionType, GroupedPagedCacheType, TmemTileType,
    FragmentType, InFlightType
  ];
}

#endif // KVCACHE_IR_KVCACHEBYTECODE_TD
