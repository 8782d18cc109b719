//===- Copies.cpp - Asynchronous copies of inline PTX ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::ptx;

//===----------------------------------------------------------------------===//
// Copies by threads
//===----------------------------------------------------------------------===//

/// cp.async.ca.shared.global [to], [from], bytes{, source bytes}{, policy};
static void emitThreadCopy(Emitter &emitter) {
  bool isCG = emitter.take("cg");
  if (!isCG && !emitter.take("ca"))
    return emitter.fail("expects '.ca' or '.cg'");
  if (!emitter.take("shared") && !emitter.take("shared::cta"))
    return emitter.fail("expects a copy to shared memory");
  emitter.take("global");
  bool hasPolicy = emitter.takeCacheHints();
  if (!emitter.expectOperands(3 + hasPolicy, 4 + hasPolicy))
    return;
  bool hasSource = emitter.size() == 4u + hasPolicy;
  Value sourceBytes = hasSource ? emitter.getInteger(3, 32) : Value();
  auto modifier =
      isCG ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  int64_t bytes = emitter.getConstant(2);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return emitter.fail("copies " + Twine(bytes) +
                        " bytes, and can copy 4, 8 or 16");
  NVVM::CpAsyncOp::create(
      emitter.builder, emitter.loc, emitter.getAddress(0, kShared),
      emitter.getAddress(1, kGlobal), bytes, modifier, sourceBytes);
}

/// cp.async.mbarrier.arrive{.noinc}.shared.b64 [barrier];
static void emitCopyArrival(Emitter &emitter) {
  emitter.take("arrive");
  bool isNoInc = emitter.take("noinc");
  unsigned space = emitter.takeSpace();
  emitter.take("b64");
  if (emitter.expectOperands(1))
    NVVM::CpAsyncMBarrierArriveOp::create(
        emitter.builder, emitter.loc, emitter.getAddress(0, space), isNoInc);
}

/// All ways to wait for groups; true if it is one.
static bool emitGroups(Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  if (emitter.take("commit_group")) {
    NVVM::CpAsyncCommitGroupOp::create(builder, emitter.loc);
  } else if (emitter.take("wait_group")) {
    NVVM::CpAsyncWaitGroupOp::create(builder, emitter.loc,
                                     emitter.getConstant(0));
  } else if (emitter.take("wait_all")) {
    // PTX ISA: the same as to commit, and to wait for all groups.
    NVVM::CpAsyncCommitGroupOp::create(builder, emitter.loc);
    NVVM::CpAsyncWaitGroupOp::create(builder, emitter.loc, 0);
  } else {
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Tensor copies
//===----------------------------------------------------------------------===//

/// The coordinates in `[map, {x, y}]`.
static SmallVector<Value> getCoordinates(size_t index, Emitter &emitter) {
  const Operand &address = emitter.get(index);
  if (address.parts.size() != 2 ||
      address.parts[1].kind != Operand::Kind::Vector) {
    emitter.fail("expects a tensor map and coordinates");
    return {};
  }
  return llvm::map_to_vector(address.parts[1].parts, [&](const Operand &part) {
    return emitter.getInteger(part, 32);
  });
}

/// Fails unless there are as many coordinates as the name says.
static bool checkCoordinates(size_t count, bool isRows, Emitter &emitter) {
  constexpr size_t numRowCoordinates = 5;
  for (size_t rank = 1; rank <= 5; ++rank)
    if (emitter.take((Twine(rank) + "d").str()) &&
        count != (isRows ? numRowCoordinates : rank))
      emitter.fail("has " + Twine(count) + " coordinates");
  return !emitter.hasFailed();
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
///     [to], [map, {x, y}], [barrier]{, mask}{, policy};
static void emitTensorLoad(Emitter &emitter) {
  bool isRows = emitter.take("tile::gather4");
  emitter.take("tile");
  emitter.take("global");
  emitter.take("mbarrier::complete_tx::bytes");
  bool isMulticast = emitter.take("multicast::cluster");
  bool hasPolicy = emitter.takeCacheHints();
  unsigned space = emitter.takeSpace();
  if (!emitter.expectOperands(3 + isMulticast + hasPolicy))
    return;
  SmallVector<Value> coordinates = getCoordinates(1, emitter);
  if (!checkCoordinates(coordinates.size(), isRows, emitter))
    return;
  Value mask = isMulticast ? emitter.getInteger(3, 16) : Value();
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      emitter.builder, emitter.loc, emitter.getAddress(0, space),
      emitter.getPointer(emitter.get(1).parts.front(), kGeneric), coordinates,
      emitter.getAddress(2, kShared), ValueRange(), mask, Value(),
      isRows ? NVVM::TMALoadMode::TILE_GATHER4 : NVVM::TMALoadMode::TILE,
      /*isCTAOnly=*/space == kShared, nullptr, Value());
}

/// cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [map, {x, y}], [from];
static void emitTensorStore(Emitter &emitter) {
  bool isRows = emitter.take("tile::scatter4");
  emitter.take("tile");
  emitter.take("global");
  emitter.take("shared::cta");
  emitter.take("bulk_group");
  bool hasPolicy = emitter.takeCacheHints();
  if (!emitter.expectOperands(2 + hasPolicy))
    return;
  SmallVector<Value> coordinates = getCoordinates(0, emitter);
  if (!checkCoordinates(coordinates.size(), isRows, emitter))
    return;
  NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
      emitter.builder, emitter.loc,
      emitter.getPointer(emitter.get(0).parts.front(), kGeneric),
      emitter.getAddress(1, kShared), coordinates, Value(),
      isRows ? NVVM::TMAStoreMode::TILE_SCATTER4 : NVVM::TMAStoreMode::TILE,
      Value());
}

static void emitTensorPrefetch(Emitter &emitter) {
  bool isRows = emitter.take("tile::gather4");
  emitter.take("tile");
  emitter.take("L2");
  emitter.take("global");
  bool hasPolicy = emitter.takeCacheHints();
  if (!emitter.expectOperands(1 + hasPolicy))
    return;
  SmallVector<Value> coordinates = getCoordinates(0, emitter);
  if (!checkCoordinates(coordinates.size(), isRows, emitter))
    return;
  NVVM::CpAsyncBulkTensorPrefetchOp::create(
      emitter.builder, emitter.loc,
      emitter.getPointer(emitter.get(0).parts.front(), kGeneric), coordinates,
      ValueRange(),
      isRows ? NVVM::TMALoadMode::TILE_GATHER4 : NVVM::TMALoadMode::TILE,
      Value());
}

//===----------------------------------------------------------------------===//
// Bulk copies
//===----------------------------------------------------------------------===//

/// cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
///     [to], [from], bytes, [barrier]{, mask}{, policy};
static void emitBulkLoad(bool isFromShared, Emitter &emitter) {
  emitter.take("mbarrier::complete_tx::bytes");
  bool isMulticast = emitter.take("multicast::cluster");
  bool hasPolicy = emitter.takeCacheHints();
  if (!emitter.expectOperands(4 + isMulticast + hasPolicy))
    return;
  OpBuilder &builder = emitter.builder;
  Value to = emitter.getAddress(0, kCluster);
  Value bytes = emitter.getInteger(2, 32);
  if (isFromShared) {
    NVVM::CpAsyncBulkSharedCTAToSharedClusterOp::create(
        builder, emitter.loc, to, emitter.getAddress(1, kShared),
        emitter.getAddress(3, kShared), bytes);
    return;
  }
  Value mask = isMulticast ? emitter.getInteger(4, 16) : Value();
  NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
      builder, emitter.loc, to, emitter.getAddress(1, kGlobal),
      emitter.getAddress(3, kShared), bytes, mask, Value());
}

/// cp.async.bulk.global.shared::cta.bulk_group [to], [from], bytes;
static void emitBulkStore(Emitter &emitter) {
  emitter.take("bulk_group");
  bool hasPolicy = emitter.takeCacheHints();
  if (emitter.expectOperands(3 + hasPolicy))
    NVVM::CpAsyncBulkSharedCTAToGlobalOp::create(
        emitter.builder, emitter.loc, emitter.getAddress(0, kGlobal),
        emitter.getAddress(1, kShared), emitter.getInteger(2, 32), Value(),
        Value());
}

static void emitBulkWait(Emitter &emitter) {
  UnitAttr read =
      emitter.take("read") ? emitter.builder.getUnitAttr() : UnitAttr();
  NVVM::CpAsyncBulkWaitGroupOp::create(emitter.builder, emitter.loc,
                                       emitter.getConstant(0), read);
}

static void emitBulk(StringRef first, Emitter &emitter) {
  if (emitter.take("commit_group"))
    NVVM::CpAsyncBulkCommitGroupOp::create(emitter.builder, emitter.loc);
  else if (emitter.take("wait_group"))
    emitBulkWait(emitter);
  else if (emitter.take("prefetch") && emitter.take("tensor"))
    emitTensorPrefetch(emitter);
  else if (emitter.take("tensor"))
    first == "global" ? emitTensorStore(emitter) : emitTensorLoad(emitter);
  else if (emitter.takeOneOf({"shared::cluster", "shared::cta"}).empty())
    emitter.fail("has a form that has no lowering");
  else if (emitter.take("global"))
    first == "global" ? emitBulkStore(emitter)
                      : emitBulkLoad(/*isFromShared=*/false, emitter);
  else if (emitter.take("shared::cta"))
    emitBulkLoad(/*isFromShared=*/true, emitter);
  else
    emitter.fail("has a form that has no lowering");
}

//===----------------------------------------------------------------------===//
// Prefetches
//===----------------------------------------------------------------------===//

static void emitPrefetch(Emitter &emitter) {
  if (!emitter.take("tensormap")) {
    // Caches have no effect on what a kernel computes.
    emitter.takeSpace();
    emitter.takeOneOf({"L1", "L2"});
    emitter.takePrefix("L2::");
    return;
  }
  emitter.takeOneOf({"param", "const"});
  if (emitter.expectOperands(1))
    NVVM::PrefetchOp::create(
        emitter.builder, emitter.loc, NVVM::PrefetchCacheLevelAttr(),
        NVVM::CacheEvictionPriorityAttr(), emitter.getAddress(0, kGeneric),
        Value(), emitter.builder.getUnitAttr());
}

/// Policies are numbers that only caches read.
static void emitPolicy(Emitter &emitter) {
  emitter.takeOneOf({"fractional", "range"});
  emitter.takePrefix("L2::");
  emitter.takeOneOf({"global", "shared::cta"});
  emitter.takeType();
  emitter.set(0, emitter.constant(0, 64));
}

bool ptx::emitCopy(StringRef name, Emitter &emitter) {
  if (name == "prefetch" || name == "prefetchu")
    return emitPrefetch(emitter), true;
  if (name == "createpolicy")
    return emitPolicy(emitter), true;
  if (name != "cp" || !emitter.take("async"))
    return false;
  if (emitter.take("bulk"))
    return emitBulk(
               emitter.findFirst({"global", "shared::cluster", "shared::cta"}),
               emitter),
           true;
  if (emitter.take("mbarrier"))
    return emitCopyArrival(emitter), true;
  if (!emitGroups(emitter))
    emitThreadCopy(emitter);
  return true;
}
