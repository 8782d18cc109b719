//===- PipeOps.cpp - Pipes of tiles ---------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpSyntax.h"
#include "RegionRules.h"

#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TensorMemoryOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

ParseResult kvcache::parseResultTypes(OpAsmParser &parser,
                                      SmallVectorImpl<Type> &types) {
  return parser.parseOptionalArrowTypeList(types);
}
void kvcache::printResultTypes(OpAsmPrinter &p, Operation *, TypeRange types) {
  p.printOptionalArrowTypeList(types);
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// Returns the enclosing function or launch of an op.
static Operation *getCode(Operation *op) {
  Operation *code = op->getParentOp();
  while (code && !isa<FunctionOpInterface, gpu::LaunchOp>(code))
    code = code->getParentOp();
  return code;
}

/// (C1); a launch may be in a loop, and so may a parallel loop, whose body may
/// become a kernel
static LogicalResult verifyPlace(PipeOp pipe) {
  Operation *code = getCode(pipe);
  for (Operation *op = pipe->getParentOp(); op != code;
       op = op->getParentOp()) {
    if (isa<scf::ParallelOp>(op))
      break;
    if (isa<LoopLikeOpInterface>(op))
      return pipe.emitOpError("expects not to be in a loop");
  }
  return success();
}

/// (C3)
static LogicalResult verifyRegisters(PipeOp op) {
  int64_t producers = op.getPipe().getType().getProducers();
  bool setsProducers = op.getProducerRegisters().has_value();
  bool setsConsumers = op.getConsumerRegisters().has_value();
  if (!setsProducers && (!setsConsumers || producers == 0))
    return success();
  if (!setsProducers || !setsConsumers)
    return op.emitOpError("expects 'producer_registers' and "
                          "'consumer_registers' together");
  constexpr int64_t warpgroup = 4;
  if (producers == 0 || producers % warpgroup != 0)
    return op.emitOpError("with registers expects 'producers' of the pipe to "
                          "be a multiple of 4, got ")
           << producers;
  return success();
}

/// (C4)
static LogicalResult verifyRoles(PipeOp pipe) {
  Operation *inside = nullptr, *outside = nullptr;
  for (Operation *user : pipe.getPipe().getUsers())
    if (isa<ProduceOp, ConsumeOp>(user))
      (user->getParentOfType<WarpRolesOp>() ? inside : outside) = user;
  if (!inside || !outside)
    return success();
  InFlightDiagnostic error =
      outside->emitOpError("expects to be in 'kvcache.warp_roles', as other "
                           "ops of its pipe are");
  error.attachNote(inside->getLoc()) << "here is one of them";
  return error;
}

LogicalResult PipeOp::verify() {
  if (failed(verifyPlace(*this)) || failed(verifyRegisters(*this)))
    return failure();
  return verifyRoles(*this);
}

/// Checks (C1): the arguments of the region are the tiles of the pipe.
static LogicalResult verifyTiles(Operation *op, PipeType pipe, Region &body) {
  TypeRange types = body.getArgumentTypes();
  if (llvm::equal(types, pipe.getTiles()))
    return success();
  return op->emitOpError("expects the arguments of the region to be the tiles "
                         "of ")
         << pipe << ", got (" << types << ")";
}

/// Checks that the op that creates the pipe is in the same function.
static LogicalResult verifySource(Operation *op, Value pipe) {
  auto source = pipe.getDefiningOp<PipeOp>();
  if (source && getCode(source) == getCode(op))
    return success();
  return op->emitOpError("expects 'pipe' to be the result of 'kvcache.pipe' in "
                         "the same function");
}

/// (C4)
static LogicalResult verifyRole(ProduceOp op) {
  auto roles = op->getParentOfType<WarpRolesOp>();
  if (!roles)
    return success();
  if (!roles.getRoles().front().isAncestor(op->getParentRegion()))
    return op.emitOpError("expects to be in the first role of "
                          "'kvcache.warp_roles'");
  int64_t producers = op.getPipe().getType().getProducers();
  if (roles.getWarps().front() == producers)
    return success();
  return op.emitOpError("expects its role to have as many warps as the pipe "
                        "has 'producers' (")
         << producers << "), got " << roles.getWarps().front();
}

LogicalResult ProduceOp::verify() {
  // (C1), (C3)
  if (failed(verifyTiles(*this, getPipe().getType(), getBody())) ||
      failed(verifySource(*this, getPipe())))
    return failure();
  return verifyRole(*this);
}

/// Whether the op may write memory. `kvcache.check` is allowed everywhere.
static bool writesMemory(Operation *op) {
  WalkResult result = op->walk([](Operation *nested) {
    bool isHarmless = isa<CheckOp>(nested) || onlyReadsMemory(nested) ||
                      nested->hasTrait<OpTrait::IsTerminator>();
    return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
  });
  return result.wasInterrupted();
}

LogicalResult ProduceOp::verifyRegions() {
  if (getBody().front().getTerminator()->getNumOperands() != 0) // (C1)
    return emitOpError("expects the region not to yield values");
  // (C2)
  for (Operation &op : getBody().front().without_terminator()) {
    if (auto copy = dyn_cast<TileCopyOpInterface>(op)) {
      if (!llvm::is_contained(getBody().getArguments(), copy.getTile()))
        return op.emitOpError("expects 'tile' to be an argument of the region "
                              "of 'kvcache.produce'");
      continue;
    }
    if (writesMemory(&op))
      return op.emitOpError("is not allowed in the region of "
                            "'kvcache.produce', which may contain only copies "
                            "and ops that do not write memory");
  }
  return success();
}

LogicalResult ConsumeOp::verify() {
  // (C1), (C2)
  if (failed(verifyTiles(*this, getPipe().getType(), getBody())))
    return failure();
  return verifySource(*this, getPipe());
}

static LogicalResult verifyCommitted(ConsumeOp op) {
  bool hasProduct = false, hasPair = false;
  op.getBody().walk([&](TmemMmaOp product) {
    hasProduct = true;
    hasPair |= product.getPair();
  });
  // (C3)
  if (!hasProduct)
    return op.emitOpError("with 'commit' expects a 'kvcache.tmem_mma' in the "
                          "region");
  // (C4)
  if (hasPair)
    return op.emitOpError("with 'commit' expects no 'pair' of "
                          "'kvcache.tmem_mma'; 'kvcache.tmem_commit' has one");
  return success();
}

LogicalResult ConsumeOp::verifyRegions() {
  if (getCommit() && failed(verifyCommitted(*this)))
    return failure();
  // (C1)
  TypeRange yielded = getBody().front().getTerminator()->getOperandTypes();
  if (yielded != getResultTypes())
    return emitOpError("expects the region to yield (")
           << getResultTypes() << "), got (" << yielded << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// warp_roles
//===----------------------------------------------------------------------===//

/// (C2)
static LogicalResult verifyRegisters(WarpRolesOp op) {
  std::optional<ArrayRef<int64_t>> registers = op.getRegisters();
  if (!registers)
    return success();
  ArrayRef<int64_t> warps = op.getWarps();
  if (registers->size() != warps.size())
    return op.emitOpError(
               "expects 'registers' to have a number for each role (")
           << warps.size() << "), got " << registers->size();
  constexpr int64_t unit = 8, least = 24, most = 256, warpgroup = 4;
  int64_t first = 0;
  for (auto [number, role] : llvm::enumerate(*registers)) {
    if (role % unit || role < least || role > most)
      return op.emitOpError("expects 'registers' to be multiples of ")
             << unit << " from " << least << " to " << most << ", got " << role;
    if (first % warpgroup && role != (*registers)[number - 1])
      return op.emitOpError(
                 "expects roles with warps of a warpgroup to have as "
                 "many registers, got ")
             << (*registers)[number - 1] << " and " << role;
    first += warps[number];
  }
  return success();
}

LogicalResult WarpRolesOp::verify() {
  // (C1)
  if (getWarps().size() != getRoles().size())
    return emitOpError("expects 'warps' to have a number for each role (")
           << getRoles().size() << "), got " << getWarps().size();
  for (int64_t count : getWarps())
    if (count < 1)
      return emitOpError("expects 'warps' to be positive, got ") << count;
  return verifyRegisters(*this);
}
