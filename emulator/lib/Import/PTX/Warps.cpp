//===- Warps.cpp - Warps and control of inline PTX ------------------------===//
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
// What the lanes of a warp do together
//===----------------------------------------------------------------------===//

/// The value and the predicate of a result that is a structure of both.
static void setPair(const Operand &to, Value pair, Emitter &emitter) {
  for (auto [index, part] : llvm::enumerate(to.parts))
    emitter.set(part, LLVM::ExtractValueOp::create(emitter.builder, emitter.loc,
                                                   pair, index));
}

static mlir::Type getPairType(mlir::Type value, Emitter &emitter) {
  return LLVM::LLVMStructType::getLiteral(emitter.builder.getContext(),
                                          {value, emitter.getIntegerType(1)});
}

/// shfl.sync.bfly.b32 d{|p}, a, lane, clamp, mask;
static void emitShuffle(Emitter &emitter) {
  using Kind = NVVM::ShflKind;
  emitter.take("sync");
  StringRef name = emitter.takeOneOf({"up", "down", "bfly", "idx"});
  emitter.takeType();
  std::optional<Kind> kind = NVVM::symbolizeShflKind(name);
  if (!kind)
    return emitter.fail("expects '.up', '.down', '.bfly' or '.idx'");
  if (!emitter.expectOperands(5))
    return;
  const Operand &to = emitter.get(0);
  bool isPair = to.kind == Operand::Kind::Pair;
  mlir::Type i32 = emitter.getIntegerType(32);
  Value result = NVVM::ShflOp::create(
      emitter.builder, emitter.loc, isPair ? getPairType(i32, emitter) : i32,
      emitter.getInteger(4, 32), emitter.getInteger(1, 32),
      emitter.getInteger(2, 32), emitter.getInteger(3, 32), *kind,
      isPair ? emitter.builder.getUnitAttr() : UnitAttr());
  if (isPair)
    setPair(to, result, emitter);
  else
    emitter.set(to, result);
}

/// vote.sync.ballot.b32 d, {!}p, mask;
static void emitVote(Emitter &emitter) {
  emitter.take("sync");
  StringRef name = emitter.takeOneOf({"all", "any", "uni", "ballot"});
  emitter.takeType();
  std::optional<NVVM::VoteSyncKind> kind = NVVM::symbolizeVoteSyncKind(name);
  if (!kind)
    return emitter.fail("expects '.all', '.any', '.uni' or '.ballot'");
  if (!emitter.expectOperands(3))
    return;
  mlir::Type type = emitter.getIntegerType(name == "ballot" ? 32 : 1);
  emitter.set(0, NVVM::VoteSyncOp::create(emitter.builder, emitter.loc, type,
                                          emitter.getInteger(2, 32),
                                          emitter.getPredicate(1), *kind));
}

/// match.any.sync.b32 d, a, mask;
static void emitMatch(Emitter &emitter) {
  bool isAll = emitter.take("all");
  if (!isAll)
    emitter.take("any");
  emitter.take("sync");
  PTXType type = emitter.takeType();
  if (!emitter.expectOperands(3))
    return;
  mlir::Type i32 = emitter.getIntegerType(32);
  Value result = NVVM::MatchSyncOp::create(
      emitter.builder, emitter.loc, isAll ? getPairType(i32, emitter) : i32,
      emitter.getInteger(2, 32), emitter.getInteger(1, type.bits),
      isAll ? NVVM::MatchSyncKind::all : NVVM::MatchSyncKind::any);
  if (!isAll)
    return emitter.set(0, result);
  if (emitter.get(0).kind == Operand::Kind::Pair)
    return setPair(emitter.get(0), result, emitter);
  emitter.set(
      0, LLVM::ExtractValueOp::create(emitter.builder, emitter.loc, result, 0));
}

/// redux.sync.add.s32 d, a, mask;
static void emitReduce(Emitter &emitter) {
  emitter.take("sync");
  StringRef name = emitter.takeOneOf({"add", "and", "or", "xor", "min", "max"});
  PTXType type = emitter.takeType();
  std::string kindName = name.str();
  if (type.isFloat())
    kindName = "f" + kindName;
  else if (type.isUnsigned() && (name == "min" || name == "max"))
    kindName = "u" + kindName;
  std::optional<NVVM::ReduxKind> kind = NVVM::symbolizeReduxKind(kindName);
  if (!kind || !emitter.expectOperands(3))
    return emitter.fail("has an operation that has no lowering");
  mlir::Type value = emitter.convert(type);
  bool isAbs = emitter.take("abs"), isNaN = emitter.take("NaN");
  emitter.set(0,
              NVVM::ReduxOp::create(emitter.builder, emitter.loc, value,
                                    emitter.getValue(1, value), *kind,
                                    emitter.getInteger(2, 32), isAbs, isNaN));
}

/// elect.sync d|p, mask: the number of the lane is where the ballot of p has
/// its bit.
static void emitElect(Emitter &emitter) {
  emitter.take("sync");
  if (!emitter.expectOperands(2))
    return;
  const Operand &to = emitter.get(0);
  if (to.kind != Operand::Kind::Pair)
    return emitter.fail("expects a lane and a predicate for its result");
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  mlir::Type i32 = emitter.getIntegerType(32);
  Value mask = emitter.getInteger(1, 32);
  Value isElected =
      NVVM::ElectSyncOp::create(builder, loc, emitter.getIntegerType(1), mask);
  emitter.set(to.parts[1], isElected);
  if (to.parts[0].kind == Operand::Kind::Sink)
    return;
  Value ballot = NVVM::VoteSyncOp::create(builder, loc, i32, mask, isElected,
                                          NVVM::VoteSyncKind::ballot);
  emitter.set(to.parts[0],
              LLVM::CountTrailingZerosOp::create(builder, loc, i32, ballot,
                                                 /*is_zero_poison=*/false));
}

/// activemask.b32 d: the lane alone. PTX promises no other, because lanes may
/// run one after the other.
static void emitActiveMask(Emitter &emitter) {
  emitter.takeType();
  if (emitter.expectOperands(1))
    emitter.set(0, NVVM::LaneMaskEqOp::create(emitter.builder, emitter.loc,
                                              emitter.getIntegerType(32)));
}

bool ptx::emitWarp(StringRef name, Emitter &emitter) {
  using Emit = void (*)(Emitter &);
  auto emit = llvm::StringSwitch<Emit>(name)
                  .Case("shfl", emitShuffle)
                  .Case("vote", emitVote)
                  .Case("match", emitMatch)
                  .Case("redux", emitReduce)
                  .Case("elect", emitElect)
                  .Case("activemask", emitActiveMask)
                  .Default(nullptr);
  if (emit)
    emit(emitter);
  return emit;
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

/// mapa.shared::cluster.u32 d, a, rank;
static void emitMapAddress(Emitter &emitter) {
  bool isShared = emitter.take("shared::cluster");
  emitter.takeType();
  if (!emitter.expectOperands(3))
    return;
  unsigned from = isShared ? kShared : kGeneric;
  unsigned to = isShared ? kCluster : kGeneric;
  emitter.set(0, NVVM::MapaOp::create(emitter.builder, emitter.loc,
                                      emitter.getPointerType(to),
                                      emitter.getPointer(emitter.get(1), from),
                                      emitter.getInteger(2, 32)));
}

static void emitGridControl(Emitter &emitter) {
  using Kind = NVVM::GridDepActionKind;
  bool waits = emitter.take("wait");
  if (!waits && !emitter.take("launch_dependents"))
    return emitter.fail("expects '.wait' or '.launch_dependents'");
  NVVM::GriddepcontrolOp::create(emitter.builder, emitter.loc,
                                 waits ? Kind::wait : Kind::launch_dependents);
}

/// setmaxnreg.inc.sync.aligned.u32 240;
static void emitSetRegisters(Emitter &emitter) {
  using Action = NVVM::SetMaxRegisterAction;
  bool isIncrease = emitter.take("inc");
  if (!isIncrease && !emitter.take("dec"))
    return emitter.fail("expects '.inc' or '.dec'");
  emitter.take("sync");
  emitter.take("aligned");
  emitter.takeType();
  if (emitter.expectOperands(1))
    NVVM::SetMaxRegisterOp::create(
        emitter.builder, emitter.loc, emitter.getConstant(0),
        isIncrease ? Action::increase : Action::decrease);
}

static void emitSleep(Emitter &emitter) {
  emitter.takeType();
  if (emitter.expectOperands(1))
    NVVM::NanosleepOp::create(emitter.builder, emitter.loc,
                              emitter.getInteger(0, 32));
}

static void emitTrap(Emitter &emitter) {
  LLVM::Trap::create(emitter.builder, emitter.loc);
}

static void emitExit(Emitter &emitter) {
  NVVM::Exit::create(emitter.builder, emitter.loc);
}

bool ptx::emitControl(StringRef name, Emitter &emitter) {
  using Emit = void (*)(Emitter &);
  auto emit = llvm::StringSwitch<Emit>(name)
                  .Case("mapa", emitMapAddress)
                  .Case("griddepcontrol", emitGridControl)
                  .Case("setmaxnreg", emitSetRegisters)
                  .Case("nanosleep", emitSleep)
                  .Cases({"trap", "brkpt"}, emitTrap)
                  .Case("exit", emitExit)
                  .Default(nullptr);
  if (emit)
    emit(emitter);
  return emit;
}
