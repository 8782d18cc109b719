//===- attention-plans.cpp - Checks every choice of attention -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enumerates the shapes of attention that the verifier admits, chooses a plan
// for each chip, and checks that the code after the choice can have it. Nothing
// is compiled. Prints the first plans that are wrong, and how many there are.
//
//===----------------------------------------------------------------------===//

#include "CompleteConfig.h"
#include "TileSizes.h"
#include "WarpSizes.h"
#include "kvcache/InitAll.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A type of caches.
struct CacheFormat {
  Type element, scale = {};
  /// Elements of a group; 0 for those of a head.
  int64_t granularity = 0;
  Type zeroPoint = {};
};

/// Types of keys and values, and of the queries that attend to them.
struct Format {
  Format(CacheFormat both, Type query)
      : keys(both), values(both), query(query) {}
  Format(CacheFormat keys, CacheFormat values, Type query)
      : keys(keys), values(values), query(query) {}

  bool isMixed() const { return keys.element != values.element; }

  CacheFormat keys, values;
  Type query;
};

/// The properties from which an op is made.
struct OpShape {
  const Format &format;
  int64_t keySize, valueSize, heads;
  bool isLatent, isSparse, hasWorkspace;
};

/// Registers of a thread, and threads of a thread block, at most.
constexpr int64_t kMostRegisters = 255, kMostThreads = 1024;
/// Columns of tensor memory.
constexpr int64_t kTensorColumns = 512;
/// Wrong plans that are printed.
constexpr int64_t kMostPrinted = 20;

class PlanChecker {
public:
  PlanChecker(MLIRContext *context, bool hasAllSizes)
      : hasAllSizes(hasAllSizes), builder(context),
        loc(UnknownLoc::get(context)), owner(ModuleOp::create(loc)),
        module(*owner) {
    Type f32 = builder.getF32Type(), f16 = builder.getF16Type(),
         bf16 = builder.getBF16Type(), i8 = builder.getI8Type(),
         e4m3 = Float8E4M3FNType::get(context),
         e8m0 = Float8E8M0FNUType::get(context), i4 = builder.getIntegerType(4),
         e2m1 = Float4E2M1FNType::get(context);
    formats = {
        {{f32}, f32},
        {{bf16}, bf16},
        {{f16}, f16},
        {{bf16}, f32},
        {{e4m3}, bf16},
        {{e4m3, e8m0}, f16},
        {{e4m3}, e4m3},
        {{i8, f32, 16}, bf16},
        {{i8}, bf16},
        {{i4, f16, 7, f16}, bf16},
        {{i4, f32, 0, f32}, f32},
        {{e2m1, e4m3, 16}, f16},
        {{i4, f16, 32, f16}, {f32}, f32},
        {{f32}, {i4, f32, 0, f32}, f32},
        {{i4, f16, 32, f16}, {i8, f32, 7}, bf16},
    };
    // Choices depend on no other features.
    constexpr Feature kRelevant =
        Feature::WGMMA | Feature::TensorMemory | Feature::TMA;
    std::set<std::pair<uint32_t, int64_t>> seen;
    for (const Chip &chip : getChips()) {
      const Chip *pointer = &chip;
      Target target(pointer);
      if (seen.insert({static_cast<uint32_t>(target.features & kRelevant),
                       target.sharedBytes})
              .second)
        targets.push_back({chip.name, target});
    }
  }

  int run() {
    for (const Format &format : formats) {
      int64_t before = shapes;
      for (int64_t keySize : getKeySizes(format))
        for (int64_t valueSize : getValueSizes(keySize))
          for (bool isLatent : {false, true})
            for (bool isSparse : {false, true})
              for (bool hasWorkspace : {false, true})
                for (int64_t heads : {1, 8, 64})
                  if (!isLatent || !format.isMixed())
                    checkOptions({format, keySize, valueSize, heads, isLatent,
                                  isSparse, hasWorkspace});
      if (shapes == before) {
        ++failures;
        llvm::outs() << "failed: no shapes for keys of " << format.keys.element
                     << " and values of " << format.values.element << "\n";
      }
    }
    llvm::outs() << "shapes: " << shapes << ", plans: " << plans
                 << ", targets: " << targets.size() << ", refused: " << refused
                 << "\n"
                 << "failures: " << failures << "\n";
    return failures ? 1 : 0;
  }

private:
  /// Sizes of heads: with `all` on the command line, every one. Others than
  /// multiples of 16 elements have no tensor cores.
  SmallVector<int64_t> getKeySizes(const Format &format) const {
    bool is4Bit = format.keys.element.getIntOrFloatBitWidth() == 4;
    return llvm::filter_to_vector(
        llvm::seq_inclusive<int64_t>(16, 576), [&](int64_t size) {
          bool isSome = size % (size <= 288 ? 16 : 64) == 0 ||
                        size % 528 == 0 || size % 102 == 0 || size == 113;
          return (hasAllSizes || isSome) && !(is4Bit && size % 2);
        });
  }

  /// Sizes at which a choice may change, in both parities of 16 elements.
  static std::set<int64_t> getValueSizes(int64_t keySize) {
    std::set<int64_t> sizes{keySize, keySize / 4 * 2, keySize / 2};
    // Most other sizes have no tensor cores.
    if (keySize % 8 && keySize % 34)
      return sizes;
    for (int64_t size : {16, 18, 64, 128, 144, 240, 256, 272, 512})
      sizes.insert(std::min(size, keySize));
    sizes.insert(keySize / 32 * 16);
    return sizes;
  }

  Value getArgument(Type type) {
    return module.getBody()->addArgument(type, loc);
  }

  PagedCacheType getCache(const CacheFormat &format, int64_t size,
                          bool isLatent) {
    MLIRContext *context = builder.getContext();
    auto params = ParamsAttr::get(context, /*num_heads=*/1, size, isLatent);
    int64_t granularity =
        !format.scale ? 0 : (format.granularity ? format.granularity : size);
    return PagedCacheType::getChecked(
        [&] { return emitError(loc); }, context, format.element, params,
        /*pageSize=*/int64_t(16), format.scale, granularity,
        LayoutAttrInterface(), LayoutAttrInterface(), TableKind::Dense,
        format.zeroPoint,
        /*tokenGranularity=*/int64_t(1));
  }

  AttentionOp build(const OpShape &shape) {
    const Format &format = shape.format;
    PagedCacheType keyType =
        getCache(format.keys, shape.keySize, shape.isLatent);
    // Values of 4 bits have an even size.
    PagedCacheType valueType =
        format.isMixed()
            ? getCache(format.values, llvm::alignTo(shape.keySize, 2),
                       /*isLatent=*/false)
            : keyType;
    if (!keyType || !valueType)
      return {};
    constexpr int64_t any = ShapedType::kDynamic;
    auto getRows = [&](int64_t size) {
      return getArgument(
          MemRefType::get({any, shape.heads, size}, format.query));
    };
    Value keys = getArgument(keyType),
          values = shape.isLatent ? Value() : getArgument(valueType),
          offsets = getArgument(MemRefType::get(any, builder.getI32Type())),
          scale = getArgument(builder.getF32Type());
    auto op =
        AttentionOp::create(builder, loc, getRows(shape.keySize), keys, values,
                            offsets, scale, getRows(shape.valueSize));
    if (format.keys.element.isInteger(8) && !format.keys.scale) {
      op.getKeyScaleMutable().assign(scale);
      if (values)
        op.getValueScaleMutable().assign(scale);
    }
    if (shape.hasWorkspace)
      op.getWorkspaceMutable().assign(
          getArgument(MemRefType::get(any, builder.getI8Type())));
    if (shape.isSparse)
      op.getRowsMutable().assign(
          getArgument(MemRefType::get({any, any}, builder.getI32Type())));
    return op;
  }

  void checkOptions(const OpShape &shape) {
    builder.setInsertionPointToStart(module.getBody());
    AttentionOp op = build(shape);
    if (!op)
      return;
    std::string obstacle = op.getTileObstacle();
    for (int64_t rows : {-1, 0, 16, 32, 64, 128}) {
      // The verifier admits no others with an obstacle.
      if (rows > 0 && !obstacle.empty())
        break;
      AttentionConfig config;
      if (rows == 0)
        config.mma = MmaKind::None;
      else if (rows > 0)
        config.rows = rows;
      for (int swap : {-1, 0, 1}) {
        // No other blocks look at it.
        if (swap >= 0 && (rows > 32 || rows == 0))
          break;
        if (swap >= 0)
          config.swapAB = swap == 1;
        op.setConfigAttr(AttentionConfigAttr::get(op.getContext(), config));
        for (int64_t splitRows : {1, 5}) {
          if (splitRows > 1 && !(shape.hasWorkspace && shape.heads == 8))
            break;
          if (shape.hasWorkspace)
            op.setSplitAttr(
                SplitAttr::get(op.getContext(), 256, 32, splitRows));
          if (succeeded(verify(op, shape)))
            checkChips(op, shape);
        }
      }
    }
    op.erase();
    module.getBody()->eraseArguments([](BlockArgument) { return true; });
  }

  LogicalResult verify(AttentionOp op, const OpShape &shape) {
    ScopedDiagnosticHandler quiet(builder.getContext(),
                                  [](Diagnostic &) { return success(); });
    return op.verifyInvariants();
  }

  void checkChips(AttentionOp op, const OpShape &shape) {
    ++shapes;
    for (const auto &[chip, target] : targets) {
      ++plans;
      std::string fault;
      FailureOr<AttentionConfig> config = completeQuietly(op, target);
      if (failed(config)) {
        ++refused;
        fault = mayRefuse(op, shape, target) ? "" : "no config";
      } else {
        fault = config->mma == MmaKind::None
                    ? findFault(op, shape, computeWarpSizes(op))
                    : findFault(op, shape, *config, target);
        if (isSwapAB(op.getFields()) && !isSwapAB(*config))
          fault = "no swap, which the config has";
        if (fault.empty() && !isKept(op, *config, target))
          fault = "another config for a complete one";
      }
      if (!fault.empty() && ++failures <= kMostPrinted)
        llvm::outs() << "failed on " << chip << ": " << fault << ": " << *op
                     << "\n";
    }
  }

  /// Whether the config may be one that the chip can't have: with rows, or with
  /// a swap of what is not multiplied by `wgmma`, 64 elements of values at
  /// once.
  static bool mayRefuse(AttentionOp op, const OpShape &shape,
                        const Target &target) {
    bool canSwap = target.has(Feature::WGMMA) && op.getTileObstacle().empty() &&
                   shape.valueSize % kRowsOfWarpgroup == 0;
    return op.getFields().rows || (isSwapAB(op.getFields()) && !canSwap);
  }

  FailureOr<AttentionConfig> completeQuietly(AttentionOp op,
                                             const Target &target) {
    ScopedDiagnosticHandler quiet(builder.getContext(),
                                  [](Diagnostic &) { return success(); });
    return completeConfig(op, target);
  }

  /// Whether a complete config stays as it is.
  bool isKept(AttentionOp op, const AttentionConfig &config,
              const Target &target) {
    AttentionConfigAttr before = op.getConfigAttr();
    op.setConfigAttr(AttentionConfigAttr::get(op.getContext(), config));
    FailureOr<AttentionConfig> again = completeQuietly(op, target);
    op.setConfigAttr(before);
    return succeeded(again) && *again == config;
  }

  /// Finds a fault of a config that products, copies or registers exclude; an
  /// empty text if there is none.
  static std::string findFault(AttentionOp op, const OpShape &shape,
                               const AttentionConfig &config,
                               const Target &target) {
    if (!op.getTileObstacle().empty())
      return "tensor cores, which have an obstacle";
    bool isByWarps = config.mma == MmaKind::Sync;
    int64_t values = shape.valueSize / *config.accShares;
    if (shape.valueSize % *config.accShares || values % 16 ||
        shape.keySize % 16)
      return "products of less than 16 elements";
    if (dequantizesInRegisters(config) &&
        (!isByWarps || values % 32 || isSwapAB(config)))
      return "in-register dequantization of less than 32 elements";
    if (*config.rows < 16 || *config.keys < 16 || *config.keys % 16 ||
        *config.stages < 1 || countThreads(config) > kMostThreads)
      return "a tile that no kernel has";
    if (isSwapAB(config) &&
        (config.mma != MmaKind::Wgmma || *config.keys != kRowsOfWarpgroup ||
         shape.valueSize % kRowsOfWarpgroup || *config.rows % 8))
      return "swapAB without 64 tokens, or elements of values";
    if (config.mma == MmaKind::Wgmma && !target.has(Feature::WGMMA))
      return "wgmma";
    if (config.mma == MmaKind::Tcgen05 && !target.has(Feature::TensorMemory))
      return "tcgen05";
    if (!isByWarps && !isSwapAB(config) && *config.rows % kRowsOfWarpgroup)
      return "less than 64 rows";
    if (!isByWarps && *config.accShares > 1 && values % 64)
      return "a share of values within a span of the swizzle";
    if (config.mma == MmaKind::Tcgen05) {
      int64_t columns =
          llvm::PowerOf2Ceil(shape.valueSize + *config.keys * 3 / 2);
      if (*config.accShares != 1 || *config.rows > 128 ||
          columns > kTensorColumns * (128 / *config.rows))
        return "more than tensor memory has";
    } else {
      // Accumulators of values and of scores. Others may spill.
      int64_t elements =
          isSwapAB(config) ? *config.rows * shape.valueSize / 128 : values / 2;
      int64_t scores = isSwapAB(config) ? *config.rows * *config.keys / 128
                                        : *config.keys / 2;
      if (elements + scores > kMostRegisters)
        return "more accumulators than registers";
    }
    // Queries, tiles of keys and values, and probabilities of swapAB.
    int64_t bytesOfToken =
        shape.keySize + (shape.isLatent ? 0 : shape.valueSize);
    int64_t lane = dequantizesInRegisters(config) ? 1 : 2;
    int64_t bytes = 2 * *config.rows * shape.keySize +
                    lane * *config.stages * *config.keys * bytesOfToken +
                    *config.rawStages * *config.keys * bytesOfToken +
                    (isSwapAB(config) ? 2 * *config.rows * *config.keys : 0);
    if (bytes > target.sharedBytes)
      return "more shared memory than the chip has";
    return "";
  }

  static std::string findFault(AttentionOp op, const OpShape &shape,
                               const WarpSizes &warp) {
    if (!llvm::isPowerOf2_64(warp.lanes) || warp.lanes > kWarp)
      return "lanes that are no part of a warp";
    for (auto [operand, size, width] :
         {std::tuple(Value(op.getKeyCache()), shape.keySize, warp.keyWidth),
          std::tuple(op.getValues(), shape.valueSize, warp.valueWidth)}) {
      auto cache = cast<CacheTypeInterface>(operand.getType());
      if (width < 1 || width % cache.getLanesPerStored())
        return "a part of a byte";
      if (width * cache.getElementType().getIntOrFloatBitWidth() > 128)
        return "loads of more than 16 bytes";
      if (size % (warp.lanes * width))
        return "elements that no lane has";
    }
    // Values of a latent cache are the first pieces of its keys.
    if (shape.isLatent && warp.keyWidth != warp.valueWidth)
      return "values that are no keys";
    if (warp.rows < 1 || shape.heads % warp.rows || warp.tokens < 1)
      return "rows that no warp has";
    return "";
  }

  bool hasAllSizes;
  OpBuilder builder;
  Location loc;
  OwningOpRef<ModuleOp> owner;
  ModuleOp module;
  SmallVector<Format> formats;
  SmallVector<std::pair<StringRef, Target>> targets;
  int64_t shapes = 0, plans = 0, refused = 0, failures = 0;
};

} // namespace

int main(int argc, char **argv) {
  DialectRegistry registry;
  kvcache::registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  return PlanChecker(&context, argc > 1 && StringRef(argv[1]) == "all").run();
}
