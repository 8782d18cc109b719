//===- TilePatterns.cpp - Tiles in shared memory --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Offsets
//===----------------------------------------------------------------------===//

/// `TileLayout::getOffset` of run-time indices, as index. What the swizzle adds
/// depends on the row alone, because chunks are whole repetitions of it. It
/// stays within a span: a column's place is found without the row's bytes, so
/// that rows with the same one are constants apart.
static Value getOffset(const AddressBuilder &b, const tma::TileLayout &layout,
                       Value row, Value column) {
  row = b.toI32(row);
  column = b.toI32(column);
  int64_t chunkColumns = layout.getChunkColumns();
  Value offset = b.mul(row, chunkColumns * layout.elementBytes);
  if (layout.getNumChunks() > 1) {
    offset = b.add(offset,
                   b.mul(b.div(column, chunkColumns), layout.getChunkBytes()));
    column = b.rem(column, chunkColumns);
  }
  Value inSpan = b.mul(column, layout.elementBytes);
  int64_t units = tma::getSpan(layout.swizzle) / 16;
  if (units > 1) {
    // 128 bytes are as many rows as `units` has to 8.
    Value line = b.rem(b.div(row, 8 / units), units);
    inSpan =
        b.builder.createOrFold<arith::XOrIOp>(b.loc, inSpan, b.mul(line, 16));
  }
  return b.fromI32(b.add(offset, inSpan));
}

/// The byte that an op on a row and column of a tile means.
template <typename OpTy>
static Value getOffset(OpBuilder &builder, OpTy op,
                       typename OpTy::Adaptor adaptor) {
  return getOffset(AddressBuilder(builder, op.getLoc()),
                   op.getTile().getType().getLayout(), adaptor.getRow(),
                   adaptor.getColumn());
}

namespace {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The maximum number of bytes for tiles in the frame of a host function: the
/// stack of a thread may be small.
constexpr int64_t kMaxFrameBytes = 256 * 1024;

/// Whether the frame of a host function has room for a tile, besides the byte
/// arrays that it holds already.
bool fitsFrame(FunctionOpInterface function, TileType tile) {
  int64_t left = kMaxFrameBytes - tile.getLayout().getBytes();
  for (auto held : function.front().getOps<memref::AllocaOp>()) {
    MemRefType type = held.getType();
    if (left >= 0 && type.hasStaticShape() && type.getRank() == 1 &&
        type.getElementType().isInteger(8))
      left -= std::min(type.getDimSize(0), kMaxFrameBytes + 1);
  }
  return left >= 0;
}

/// A variable of the kernel's module; on the host one of the function's frame,
/// or of the heap until the function returns.
struct LowerAllocTile : OpConversionPattern<AllocTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AllocTileOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileType type = op.getTile().getType();
    IntegerAttr alignment = rewriter.getI64IntegerAttr(op.getMemoryAlignment());
    if (auto module = op->getParentOfType<gpu::GPUModuleOp>()) {
      StringAttr name =
          createVariable(rewriter, op.getLoc(), module, type, alignment);
      rewriter.replaceOpWithNewOp<memref::GetGlobalOp>(op, type.getMemoryType(),
                                                       name.getValue());
      return success();
    }
    if (isInGPUCode(op))
      return op.emitOpError("expects its kernel to be outlined");
    auto function = op->getParentOfType<FunctionOpInterface>();
    if (!function)
      return op.emitOpError("expects to be in a function");
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(&function.front());
    if (fitsFrame(function, type)) {
      rewriter.replaceOp(op, memref::AllocaOp::create(rewriter, op.getLoc(),
                                                      type.getMemoryType(),
                                                      alignment));
      return success();
    }
    auto memory = memref::AllocOp::create(rewriter, op.getLoc(),
                                          type.getMemoryType(), alignment);
    for (Block &block : function.getFunctionBody()) {
      if (!block.getTerminator()->hasTrait<OpTrait::ReturnLike>())
        continue;
      rewriter.setInsertionPoint(block.getTerminator());
      memref::DeallocOp::create(rewriter, op.getLoc(), memory);
    }
    rewriter.replaceOp(op, memory);
    return success();
  }

private:
  static StringAttr createVariable(OpBuilder &builder, Location loc,
                                   gpu::GPUModuleOp module, TileType type,
                                   IntegerAttr alignment) {
    StringAttr name = findFreeName(module);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    memref::GlobalOp::create(builder, loc, name,
                             builder.getStringAttr("private"),
                             type.getMemoryType(), builder.getUnitAttr(),
                             /*constant=*/false, alignment);
    return name;
  }

  /// `kvcache_tile`, or with the next free number: a symbol table would go
  /// stale when the driver rolls the pattern back.
  static StringAttr findFreeName(gpu::GPUModuleOp module) {
    constexpr StringLiteral base = "kvcache_tile";
    llvm::StringSet<> taken;
    for (auto symbol : module.getOps<SymbolOpInterface>())
      taken.insert(symbol.getName());
    std::string name = base.str();
    for (size_t number = 0; taken.contains(name); ++number)
      name = (base + "_" + Twine(number)).str();
    return StringAttr::get(module.getContext(), name);
  }
};

/// A tile is its memory.
template <typename OpTy> struct LowerToMemory : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(OpTy op, typename OpTy::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getOperands());
    return success();
  }
};

/// A tile in tensor memory is its address, which `convert-kvcache-to-nvvm`
/// casts from and to it.
struct LowerAddressCast : OpConversionPattern<UnrealizedConversionCastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(UnrealizedConversionCastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto isTile = [](Type type) { return isa<TmemTileType>(type); };
    if (op->getNumOperands() != 1 || op->getNumResults() != 1 ||
        (!isTile(op.getOperand(0).getType()) &&
         !isTile(op.getResult(0).getType())))
      return rewriter.notifyMatchFailure(op, "not of a tile in tensor memory");
    rewriter.replaceOp(op, adaptor.getOperands());
    return success();
  }
};

struct LowerTileOffset : OpConversionPattern<TileOffsetOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TileOffsetOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, getOffset(rewriter, op, adaptor));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// The bytes of a value: a vector of as many.
static VectorType getBytesType(Type type) {
  int64_t bits = getNumLanes(type) * getLaneType(type).getIntOrFloatBitWidth();
  return VectorType::get(bits / 8, IntegerType::get(type.getContext(), 8));
}

struct LowerTileLoad : OpConversionPattern<TileLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TileLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value offset = getOffset(rewriter, op, adaptor);
    VectorType bytes = getBytesType(op.getType());
    Value loaded = vector::LoadOp::create(
        rewriter, loc, bytes, adaptor.getTile(), offset,
        /*nontemporal=*/false, llvm::Align(bytes.getNumElements()));
    auto type =
        VectorType::get(getNumLanes(op.getType()), getLaneType(op.getType()));
    Value result = rewriter.createOrFold<vector::BitCastOp>(loc, type, loaded);
    if (!isa<VectorType>(op.getType()))
      result = vector::ExtractOp::create(rewriter, loc, result, 0);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct LowerTileStore : OpConversionPattern<TileStoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TileStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value offset = getOffset(rewriter, op, adaptor);
    Value value = adaptor.getValue();
    VectorType bytes = getBytesType(value.getType());
    if (!isa<VectorType>(value.getType()))
      value = vector::FromElementsOp::create(
          rewriter, loc, VectorType::get(1, value.getType()), value);
    value = rewriter.createOrFold<vector::BitCastOp>(loc, bytes, value);
    rewriter.replaceOpWithNewOp<vector::StoreOp>(
        op, value, adaptor.getTile(), offset, /*nontemporal=*/false,
        llvm::Align(bytes.getNumElements()));
    return success();
  }
};

} // namespace

void kvcache::populateTilePatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<LowerAllocTile, LowerToMemory<TileMemoryOp>,
               LowerToMemory<TileViewOp>, LowerAddressCast, LowerTileOffset,
               LowerTileLoad, LowerTileStore>(converter, patterns.getContext());
}
