//===- Choice.cpp - Kinds of copies that are possible ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice.h"
#include "Geometry.h"
#include "HostView.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/Support/Threads.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The maximum number of tensor copies that one lane issues one after the
/// other. For more, threads that copy 16 bytes each are faster.
static constexpr int64_t kMaxCopies = 64;

/// PTX ISA, "cp.async.bulk.tensor": the alignment of the destination.
static constexpr int64_t kDestinationAlignment = 128;

CopySite::CopySite(FunctionOpInterface function)
    : function(function), chip(getTargetChip(function)) {
  auto gpuFunction = dyn_cast<gpu::GPUFuncOp>(*function);
  if (gpuFunction && gpuFunction.isKernel() && chip)
    kernel = gpuFunction;
}

bool kvcache::hasOwnWait(TileCopyOpInterface copy) {
  Value token = copy.getTokenOfCopy();
  if (!token.hasOneUse())
    return false;
  Operation *user = *token.user_begin();
  return isa<WaitOp>(user) && user->getBlock() == copy->getBlock();
}

bool kvcache::isByUnit(CopyKind kind) {
  return kind != CopyKind::Plain && kind != CopyKind::CpAsync;
}

bool kvcache::needsDescriptor(CopyKind kind) {
  return kind == CopyKind::TensorBoxes || kind == CopyKind::TensorRows;
}

//===----------------------------------------------------------------------===//
// Obstacles
//===----------------------------------------------------------------------===//

/// Finds an obstacle in the context of the copy: its chip, and the barrier that
/// granules need.
static std::optional<std::string> findObstacleOfPlace(TileCopyOpInterface copy,
                                                      CopyKind kind,
                                                      const CopySite &site) {
  if (kind == CopyKind::Plain)
    return std::nullopt;
  if (!isInGPUCode(copy) || !site.chip)
    return "it is not in a gpu.module with one target";
  if (!isByUnit(kind))
    return std::nullopt;
  if (!site.chip->has(Feature::TMA))
    return getMissingFeatureMessage(*site.chip, Feature::TMA);
  if (!site.kernel)
    return "only a kernel can initialize the barrier of the copy";
  if (!isa<ProduceOp>(copy->getParentOp()) && !hasOwnWait(copy))
    return "a barrier needs one wait, in the block of the copy";
  return std::nullopt;
}

/// Finds an obstacle in the rows of the cache, for copies of single rows.
static std::optional<std::string>
findObstacleOfAlignment(TileCopyOpInterface copy, int64_t needed) {
  int64_t alignment = getRowAlignment(copy.getViewType());
  if (alignment >= needed)
    return std::nullopt;
  return llvm::formatv("rows are aligned to {0} bytes, not to {1}", alignment,
                       needed);
}

/// Finds an obstacle in the hardware's limits of descriptors.
static std::optional<std::string> findObstacleOfMap(TileCopyOpInterface copy) {
  std::optional<std::string> limit = tma::findBrokenLimit(getTensorMap(copy));
  if (limit)
    return "the descriptor " + *limit;
  return std::nullopt;
}

static std::string formatRows(int64_t rows) {
  return std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

static std::optional<std::string>
findObstacleOfBoxes(TileCopyOpInterface copy) {
  CacheTypeInterface cache = copy.getViewType();
  if (cache.isPaged() && !cache.hasStaticPageSize())
    return "the page size is known only at run time";
  if (auto obstacle = findObstacleOfMap(copy))
    return obstacle;
  tma::TileLayout layout = copy.getTileLayout();
  int64_t boxRows = getBoxRows(copy);
  int64_t bytes = boxRows * getChunkRowBytes(layout);
  if (boxRows != layout.rows && bytes % kDestinationAlignment != 0)
    return llvm::formatv(
        "a box of {0} has {1} bytes of a chunk, not a multiple "
        "of {2}",
        formatRows(boxRows), bytes, kDestinationAlignment);
  return std::nullopt;
}

/// The number of rows that an instruction of `tensor_rows` copies.
static int64_t getRowsOfCopy(const Chip &chip) {
  return chip.has(Feature::Gather4) ? 4 : 1;
}

static std::optional<std::string> findObstacleOfRows(TileCopyOpInterface copy,
                                                     const Chip &chip) {
  tma::TileLayout layout = copy.getTileLayout();
  // The coordinates of a row count the elements of the heads before.
  if (copy.getViewType().hasOpenHeadStride())
    return "the stride of heads is known only at run time";
  if (layout.rows % 4 != 0)
    return llvm::formatv("the tile has {0} rows, not a multiple of 4",
                         layout.rows);
  if (auto obstacle = findObstacleOfMap(copy))
    return obstacle;
  int64_t rows = getRowsOfCopy(chip);
  int64_t bytes = rows * getChunkRowBytes(layout);
  if (bytes % kDestinationAlignment != 0)
    return llvm::formatv("a copy of {0} has {1} bytes of a chunk, not a "
                         "multiple of {2}",
                         formatRows(rows), bytes, kDestinationAlignment);
  return std::nullopt;
}

std::optional<std::string> kvcache::findObstacle(TileCopyOpInterface copy,
                                                 CopyKind kind,
                                                 const CopySite &site) {
  if (auto obstacle = findObstacleOfPlace(copy, kind, site))
    return obstacle;
  switch (kind) {
  case CopyKind::Plain:
    return std::nullopt;
  case CopyKind::CpAsync:
    return findObstacleOfAlignment(copy, 4);
  case CopyKind::TensorBoxes:
    return findObstacleOfBoxes(copy);
  case CopyKind::TensorRows:
    if (auto obstacle = findObstacleOfAlignment(copy, 16))
      return obstacle;
    return findObstacleOfRows(copy, *site.chip);
  case CopyKind::BulkRows:
    if (copy.getTile().getType().getSwizzle() != Swizzle::None)
      return "the tile has a swizzle";
    return findObstacleOfAlignment(copy, 16);
  }
  llvm_unreachable("covered switch");
}

std::optional<std::string>
kvcache::findDescriptorObstacle(TileCopyOpInterface copy, const CopySite &site,
                                ArrayRef<gpu::LaunchFuncOp> launches) {
  std::optional<HostView> view = HostView::find(copy.getAccessedCache());
  if (!view)
    return "the host can't compute the view from the kernel's arguments";
  // A host elsewhere has only our description.
  if (launches.empty() && !view->describe(site.kernel))
    return "the module does not launch the kernel, and 'kvcache.descriptor' "
           "can't describe the view";
  if (countsRowsOfAllPages(copy) && view->hasOddDistance(launches))
    return "pages do not lie a whole number of rows apart";
  return std::nullopt;
}

std::optional<std::string> kvcache::findDrawback(TileCopyOpInterface copy,
                                                 CopyKind kind,
                                                 const CopySite &site) {
  if (!needsDescriptor(kind))
    return std::nullopt;
  // A gather of four rows may take as many cycles as four copies.
  bool isBoxes = kind == CopyKind::TensorBoxes;
  int64_t rows = isBoxes ? getBoxRows(copy) : getRowsOfCopy(*site.chip);
  tma::TileLayout layout = copy.getTileLayout();
  int64_t copies = layout.rows / rows * layout.getNumChunks();
  int64_t most = isBoxes ? kMaxCopies : kMaxCopies * rows;
  if (copies <= most)
    return std::nullopt;
  std::string reason =
      llvm::formatv("it takes {0} copies of {1}, more than {2}", copies,
                    formatRows(rows), most);
  if (isBoxes && rows < getMostBoxRows(copy))
    reason += "; 'base_alignment' can state what the first token is a multiple "
              "of";
  return reason;
}

std::optional<std::string>
kvcache::findMulticastObstacle(TileCopyOpInterface copy, CopyKind kind) {
  if (kind != CopyKind::TensorBoxes)
    return llvm::formatv("only tensor_boxes can do it, not {0}",
                         stringifyCopyKind(kind));
  if (countBlocksOfCluster(copy) == 1)
    return "the kernel does not state clusters of several blocks "
           "('known_cluster_size')";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Lowering
//===----------------------------------------------------------------------===//

LogicalResult kvcache::checkLowerable(TileCopyOpInterface copy,
                                      const CopySite &site) {
  if (failed(checkConstantElement(cast<AccessOpInterface>(*copy))))
    return failure();
  std::optional<CopyKind> kind = copy.getCopy();
  if (!kind)
    return copy->emitOpError(
        "expects 'copy', which kvcache-choose-copies sets");
  if (needsDescriptor(*kind) && !copy.getDescriptor())
    return copy->emitOpError("expects 'descriptor', which "
                             "kvcache-materialize-descriptors adds, for ")
           << stringifyCopyKind(*kind);
  // The verifier checks what a descriptor must be.
  std::optional<std::string> obstacle =
      copy.getDescriptor() ? findObstacleOfPlace(copy, *kind, site)
                           : findObstacle(copy, *kind, site);
  if (obstacle)
    return copy->emitOpError("can't be copied by ")
           << stringifyCopyKind(*kind) << ": " << *obstacle;
  if (copy.isMulticast())
    if (auto obstacle = findMulticastObstacle(copy, *kind))
      return copy->emitOpError("can't be multicast: ") << *obstacle;
  return success();
}
