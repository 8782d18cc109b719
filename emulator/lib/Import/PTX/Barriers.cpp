//===- Barriers.cpp - Barriers and fences of inline PTX -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::ptx;

//===----------------------------------------------------------------------===//
// Barriers of a block, of a warp, of a cluster
//===----------------------------------------------------------------------===//

static UnitAttr takeAligned(Emitter &emitter) {
  return emitter.take("aligned") ? emitter.builder.getUnitAttr() : UnitAttr();
}

static void emitClusterBarrier(Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  bool isArrival = emitter.take("arrive"), isWait = emitter.take("wait");
  bool isRelaxed = emitter.take("relaxed");
  emitter.takeOneOf({"release", "acquire"});
  UnitAttr aligned = takeAligned(emitter);
  if (isArrival && isRelaxed)
    NVVM::ClusterArriveRelaxedOp::create(builder, emitter.loc, aligned);
  else if (isArrival)
    NVVM::ClusterArriveOp::create(builder, emitter.loc, aligned);
  else if (isWait)
    NVVM::ClusterWaitOp::create(builder, emitter.loc, aligned);
  else
    emitter.fail("expects '.arrive' or '.wait'");
}

/// bar.red.popc.u32 d, 0, {!}p; NVVM has it for all threads at barrier 0.
static void emitReduction(Emitter &emitter) {
  using Reduction = NVVM::BarrierReduction;
  StringRef name = emitter.takeOneOf({"popc", "and", "or"});
  emitter.takeType();
  if (!emitter.expectOperands(3, 4))
    return;
  if (emitter.size() == 4 || emitter.getConstant(1) != 0)
    return emitter.fail("at another barrier than 0 or of some threads has no "
                        "lowering");
  auto kind = llvm::StringSwitch<Reduction>(name)
                  .Case("and", Reduction::AND)
                  .Case("or", Reduction::OR)
                  .Default(Reduction::POPC);
  Value predicate = emitter.resize(emitter.getPredicate(2), 32);
  MLIRContext *context = emitter.builder.getContext();
  Value result =
      NVVM::BarrierOp::create(
          emitter.builder, emitter.loc, emitter.getIntegerType(32), Value(),
          Value(), NVVM::BarrierReductionAttr::get(context, kind), predicate)
          .getRes();
  if (kind != Reduction::POPC)
    result = LLVM::ICmpOp::create(emitter.builder, emitter.loc,
                                  LLVM::ICmpPredicate::ne, result,
                                  emitter.constant(0, 32));
  emitter.set(0, result);
}

/// bar.sync id{, threads}; bar.arrive id, threads;
static void emitBlockBarrier(Emitter &emitter) {
  emitter.take("cta");
  emitter.take("aligned");
  if (emitter.take("red"))
    return emitReduction(emitter);
  bool isArrival = emitter.take("arrive");
  if (!isArrival && !emitter.take("sync"))
    return emitter.fail("expects '.sync', '.arrive' or '.red'");
  if (!emitter.expectOperands(isArrival ? 2 : 1, 2))
    return;
  Value id = emitter.getInteger(0, 32);
  Value threads = emitter.size() == 2 ? emitter.getInteger(1, 32) : Value();
  if (isArrival)
    NVVM::BarrierArriveOp::create(emitter.builder, emitter.loc, id, threads);
  else
    NVVM::BarrierOp::create(emitter.builder, emitter.loc, mlir::Type(), id,
                            threads, NVVM::BarrierReductionAttr(), Value());
}

static void emitAnyBarrier(Emitter &emitter) {
  if (emitter.take("cluster"))
    return emitClusterBarrier(emitter);
  if (!emitter.take("warp"))
    return emitBlockBarrier(emitter);
  emitter.take("sync");
  if (emitter.expectOperands(1))
    NVVM::SyncWarpOp::create(emitter.builder, emitter.loc,
                             emitter.getInteger(0, 32));
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

namespace {
/// The form of an instruction on an mbarrier, by its name.
struct BarrierForm {
  unsigned space = 0;
  NVVM::MemScopeKind scope = NVVM::MemScopeKind::CTA;
  bool isRelaxed = false;
};
} // namespace

static BarrierForm takeForm(Emitter &emitter, NVVM::MemScopeKind otherwise) {
  BarrierForm form;
  form.isRelaxed = emitter.take("relaxed");
  emitter.takeOneOf({"release", "acquire"});
  form.scope = emitter.takeScope(otherwise);
  form.space = emitter.takeSpace();
  emitter.take("b64");
  return form;
}

/// mbarrier.arrive{.expect_tx} state, [barrier]{, count};
static void emitArrival(bool drops, Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  bool expects = emitter.take("expect_tx");
  bool isPartial = emitter.take("noComplete");
  BarrierForm form = takeForm(emitter, NVVM::MemScopeKind::CTA);
  if (!emitter.expectOperands(1, 3))
    return;
  // `_` may be left out: mbarrier.arrive.shared.b64 [barrier];
  bool hasResult = emitter.get(0).kind != Operand::Kind::Address;
  Value barrier = emitter.getAddress(hasResult, form.space);
  bool hasCount = emitter.size() == 2u + hasResult;
  Value count = hasCount ? emitter.getInteger(1 + hasResult, 32) : Value();
  bool isRemote = form.space == kCluster;
  mlir::Type state = isRemote ? mlir::Type() : emitter.getIntegerType(64);
  if ((expects || isPartial) && !count)
    return emitter.fail("expects a number after the barrier");
  Operation *op;
  if (expects && drops)
    op = NVVM::MBarrierArriveDropExpectTxOp::create(
        builder, loc, state, barrier, count, form.scope, form.isRelaxed);
  else if (expects)
    op = NVVM::MBarrierArriveExpectTxOp::create(builder, loc, state, barrier,
                                                count, form.scope,
                                                form.isRelaxed, Value());
  else if (isPartial && drops)
    op = NVVM::MBarrierArriveDropNocompleteOp::create(
        builder, loc, emitter.getIntegerType(64), barrier, count);
  else if (isPartial)
    op = NVVM::MBarrierArriveNocompleteOp::create(
        builder, loc, emitter.getIntegerType(64), barrier, count);
  else if (drops)
    op = NVVM::MBarrierArriveDropOp::create(builder, loc, state, barrier, count,
                                            form.scope, form.isRelaxed);
  else
    op = NVVM::MBarrierArriveOp::create(builder, loc, state, barrier, count,
                                        form.scope, form.isRelaxed);
  if (!hasResult || emitter.get(0).kind == Operand::Kind::Sink)
    return;
  if (op->getNumResults() == 0)
    return emitter.fail("gives no state of another block's mbarrier");
  emitter.set(0, op->getResult(0));
}

/// mbarrier.try_wait{.parity} done, [barrier], state{, nanoseconds};
static void emitTest(bool isTry, Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  bool isParity = emitter.take("parity");
  // Kernels use it without a scope for barriers that other blocks arrive at,
  // as nvvm.mbarrier.try_wait.parity.
  BarrierForm form =
      takeForm(emitter, isTry && isParity ? NVVM::MemScopeKind::CLUSTER
                                          : NVVM::MemScopeKind::CTA);
  if (!emitter.expectOperands(3, isTry ? 4 : 3))
    return;
  Value barrier = emitter.getAddress(1, form.space);
  Value state = emitter.getInteger(2, isParity ? 32 : 64);
  mlir::Type done = emitter.getIntegerType(1);
  if (!isTry)
    return emitter.set(
        0, NVVM::MBarrierTestWaitOp::create(builder, emitter.loc, done, barrier,
                                            state, form.scope, form.isRelaxed));
  Value ticks = emitter.size() == 4 ? emitter.getInteger(3, 32) : Value();
  emitter.set(0, NVVM::MBarrierTryWaitOp::create(builder, emitter.loc, done,
                                                 barrier, state, ticks,
                                                 form.scope, form.isRelaxed));
}

/// init, expect_tx, complete_tx: an address and a number.
static void emitCount(StringRef name, Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  BarrierForm form = takeForm(emitter, NVVM::MemScopeKind::CTA);
  if (!emitter.expectOperands(2))
    return;
  Value barrier = emitter.getAddress(0, form.space);
  Value count = emitter.getInteger(1, 32);
  if (name == "init")
    NVVM::MBarrierInitOp::create(builder, loc, barrier, count, Value());
  else if (name == "expect_tx")
    NVVM::MBarrierExpectTxOp::create(builder, loc, barrier, count, form.scope);
  else
    NVVM::MBarrierCompleteTxOp::create(builder, loc, barrier, count,
                                       form.scope);
}

static void emitMBarrier(Emitter &emitter) {
  bool isArrival = emitter.take("arrive");
  if (isArrival || emitter.take("arrive_drop"))
    return emitArrival(/*drops=*/!isArrival, emitter);
  if (StringRef name = emitter.takeOneOf({"test_wait", "try_wait"});
      !name.empty())
    return emitTest(name == "try_wait", emitter);
  if (StringRef name = emitter.takeOneOf({"init", "expect_tx", "complete_tx"});
      !name.empty())
    return emitCount(name, emitter);
  if (!emitter.take("inval"))
    return emitter.fail("has a form that has no lowering");
  BarrierForm form = takeForm(emitter, NVVM::MemScopeKind::CTA);
  NVVM::MBarrierInvalOp::create(emitter.builder, emitter.loc,
                                emitter.getAddress(0, form.space));
}

//===----------------------------------------------------------------------===//
// Fences
//===----------------------------------------------------------------------===//

static void emitProxyFence(Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  MLIRContext *context = builder.getContext();
  using Kind = NVVM::ProxyKind;
  if (emitter.take("tensormap::generic")) {
    bool acquires = emitter.take("acquire");
    if (!acquires)
      emitter.take("release");
    NVVM::MemScopeKind scope = emitter.takeScope(NVVM::MemScopeKind::GPU);
    if (acquires && emitter.expectOperands(2))
      NVVM::FenceProxyAcquireOp::create(builder, emitter.loc, scope,
                                        emitter.getAddress(0, 0),
                                        emitter.getInteger(1, 32));
    else if (!acquires)
      NVVM::FenceProxyReleaseOp::create(builder, emitter.loc, scope);
    return;
  }
  if (emitter.take("alias")) {
    NVVM::FenceProxyOp::create(builder, emitter.loc, Kind::alias,
                               NVVM::SharedSpaceAttr());
    return;
  }
  if (emitter.take("async.global") ||
      (emitter.take("async") && emitter.take("global"))) {
    NVVM::FenceProxyOp::create(builder, emitter.loc, Kind::async_global,
                               NVVM::SharedSpaceAttr());
    return;
  }
  StringRef space = emitter.takeOneOf({"shared::cta", "shared::cluster"});
  if (space.empty()) {
    NVVM::FenceProxyOp::create(builder, emitter.loc, Kind::async,
                               NVVM::SharedSpaceAttr());
    return;
  }
  auto shared = space == "shared::cta" ? NVVM::SharedSpace::shared_cta
                                       : NVVM::SharedSpace::shared_cluster;
  NVVM::FenceProxyOp::create(builder, emitter.loc, Kind::async_shared,
                             NVVM::SharedSpaceAttr::get(context, shared));
}

/// fence.acq_rel.gpu; membar.gl;
static void emitMemoryFence(Emitter &emitter) {
  using Scope = NVVM::MemScopeKind;
  emitter.takeOneOf({"sc", "acq_rel"});
  auto scope = llvm::StringSwitch<Scope>(emitter.takeOneOf({"gl"}))
                   .Case("gl", Scope::GPU)
                   .Default(emitter.takeScope(Scope::GPU));
  if (scope == Scope::CLUSTER)
    NVVM::FenceScClusterOp::create(emitter.builder, emitter.loc);
  else
    NVVM::MembarOp::create(emitter.builder, emitter.loc, scope);
}

static void emitFence(Emitter &emitter) {
  if (emitter.take("proxy"))
    return emitProxyFence(emitter);
  if (!emitter.take("mbarrier_init"))
    return emitMemoryFence(emitter);
  emitter.take("release");
  emitter.take("cluster");
  NVVM::FenceMbarrierInitOp::create(emitter.builder, emitter.loc);
}

bool ptx::emitBarrier(StringRef name, Emitter &emitter) {
  if (name == "bar" || name == "barrier")
    return emitAnyBarrier(emitter), true;
  if (name == "mbarrier")
    return emitMBarrier(emitter), true;
  if (name == "fence")
    return emitFence(emitter), true;
  if (name == "membar")
    return emitMemoryFence(emitter), true;
  return false;
}
