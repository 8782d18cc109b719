//===- ChooseCopies.cpp - Choose how each copy is done --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CacheStores.h"
#include "Choice.h"
#include "Geometry.h"

#include "kvcache/GPU/KernelLaunches.h"
#include "kvcache/IR/CopyOps.h"
#include "kvcache/Support/Threads.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CHOOSECOPIES
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

remark::RemarkOpts getRemarkOptions() {
  return remark::RemarkOpts::name("copy").category("kvcache-choose-copies");
}

/// One string, because each part of a remark is an argument of its own.
std::string describe(StringRef prefix, CopyKind kind) {
  return (prefix + stringifyCopyKind(kind)).str();
}

/// Reports the kind of a copy. A kind with a box of rows also reports them.
void remarkChosen(TileCopyOpInterface copy, CopyKind kind, bool isGiven) {
  auto remark = remark::passed(copy.getLoc(), getRemarkOptions());
  remark << describe("copies by ", kind);
  if (isGiven)
    remark << remark::reason("the attribute 'copy' says so");
  if (kind == CopyKind::TensorBoxes && !copy.getDescriptor())
    remark << remark::metric("BoxRows", getBoxRows(copy));
}

/// The reason why a block must not copy for others, or nothing. What threads of
/// a block have stored to the cache before the copy, another block that issues
/// it need not see.
std::optional<std::string> findAnyMulticastObstacle(TileCopyOpInterface copy,
                                                    CopyKind kind,
                                                    Operation *root) {
  if (auto obstacle = findMulticastObstacle(copy, kind))
    return obstacle;
  CacheStores stores(copy->getParentOfType<FunctionOpInterface>(), root);
  if (stores.mayWrite(copy.getAccessedCache()))
    return "the kernel may store to the cache";
  return std::nullopt;
}

/// Reports that each block copies for all of its cluster, or removes the
/// attribute that asks for it.
void chooseMulticast(TileCopyOpInterface copy, CopyKind kind, Operation *root) {
  if (!copy.isMulticast())
    return;
  std::optional<std::string> obstacle =
      findAnyMulticastObstacle(copy, kind, root);
  if (!obstacle) {
    remark::passed(copy.getLoc(), getRemarkOptions())
        << "copies a share for the blocks of the cluster"
        << remark::metric("Blocks", countBlocksOfCluster(copy));
    return;
  }
  cast<AsyncLoadTileOp>(*copy).setMulticast(false);
  remark::missed(copy.getLoc(), getRemarkOptions())
      << "copies the whole tile in each block of the cluster"
      << remark::reason("{0}", *obstacle);
}

struct ChooseCopies : kvcache::impl::ChooseCopiesBase<ChooseCopies> {
  void runOnOperation() override {
    KernelLaunches launches(getOperation());
    bool hasFailed = false, changed = false;
    getOperation().walk([&](FunctionOpInterface function) {
      CopySite site(function);
      ArrayRef<gpu::LaunchFuncOp> launchesOfKernel;
      if (site.kernel)
        launchesOfKernel = launches.lookup(site.kernel);
      function.walk([&](TileCopyOpInterface copy) {
        changed = true;
        if (failed(choose(copy, site, launchesOfKernel)))
          hasFailed = true;
      });
    });
    if (hasFailed)
      signalPassFailure();
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  /// The reason why the copy can't be of this kind, or nothing if it can.
  static std::optional<std::string>
  findAnyObstacle(TileCopyOpInterface copy, CopyKind kind, const CopySite &site,
                  ArrayRef<gpu::LaunchFuncOp> launches) {
    std::optional<std::string> obstacle = findObstacle(copy, kind, site);
    if (!obstacle && needsDescriptor(kind) && !copy.getDescriptor())
      obstacle = findDescriptorObstacle(copy, site, launches);
    return obstacle;
  }

  /// Sets the kind of a copy, or checks the kind that the author has set.
  LogicalResult choose(TileCopyOpInterface copy, const CopySite &site,
                       ArrayRef<gpu::LaunchFuncOp> launches) {
    if (std::optional<CopyKind> kind = copy.getCopy()) {
      if (auto obstacle = findAnyObstacle(copy, *kind, site, launches))
        return copy->emitOpError("can't be copied by ")
               << stringifyCopyKind(*kind) << ": " << *obstacle;
      finish(copy, *kind, /*isGiven=*/true);
      return success();
    }
    for (CopyKind kind : copy.getCopyKinds()) {
      std::optional<std::string> reason =
          findAnyObstacle(copy, kind, site, launches);
      if (!reason)
        reason = findDrawback(copy, kind, site);
      if (!reason) {
        copy.setCopy(kind);
        finish(copy, kind, /*isGiven=*/false);
        return success();
      }
      remark::missed(copy.getLoc(), getRemarkOptions())
          << describe("does not copy by ", kind)
          << remark::reason("{0}", *reason);
    }
    return copy->emitOpError("has no kind of copy that is possible");
  }

  void finish(TileCopyOpInterface copy, CopyKind kind, bool isGiven) {
    remarkChosen(copy, kind, isGiven);
    chooseMulticast(copy, kind, getOperation());
    switch (kind) {
    case CopyKind::Plain:
      ++numPlain;
      break;
    case CopyKind::CpAsync:
      ++numCpAsync;
      break;
    case CopyKind::TensorBoxes:
      ++numTensorBoxes;
      break;
    case CopyKind::TensorRows:
      ++numTensorRows;
      break;
    case CopyKind::BulkRows:
      ++numBulkRows;
      break;
    }
  }
};

} // namespace
