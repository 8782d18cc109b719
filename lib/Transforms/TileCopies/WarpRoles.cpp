//===- WarpRoles.cpp - Branches of warps ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpRoles.h"

#include "Blocks.h"
#include "PipeRegisters.h"
#include "kvcache/Support/Threads.h"
#include "kvcache/Target/Registers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// Warps of a warpgroup, which have one number of registers.
constexpr int64_t kWarpsOfGroup = 4;

std::optional<int64_t>
kvcache::countWarpsOfRoles(ArrayRef<ConsumeOp> consumes) {
  auto roles = consumes.empty()
                   ? WarpRolesOp()
                   : consumes.front()->getParentOfType<WarpRolesOp>();
  if (!roles)
    return std::nullopt;
  int64_t sum = 0;
  for (auto [warps, role] : llvm::zip_equal(roles.getWarps(), roles.getRoles()))
    if (llvm::any_of(consumes, [&role = role](ConsumeOp consume) {
          return role.isAncestor(consume->getParentRegion());
        }))
      sum += warps;
  return sum;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static int64_t countAllWarps(WarpRolesOp op) {
  return std::accumulate(op.getWarps().begin(), op.getWarps().end(),
                         int64_t(0));
}

/// (C3), without registers.
static LogicalResult checkPlace(WarpRolesOp op, gpu::GPUFuncOp kernel) {
  if (op->getParentOp() != kernel)
    return op.emitOpError("expects not to be in a loop or a branch");
  bool hasOthers = kernel
                       .walk([&](WarpRolesOp other) {
                         return other == op ? WalkResult::advance()
                                            : WalkResult::interrupt();
                       })
                       .wasInterrupted();
  if (hasOthers)
    return op.emitOpError("expects to be the only one of its kernel");
  int64_t all = countAllWarps(op) * BlockBuilder::kWarp;
  int64_t threads = getKnownThreads(kernel).value_or(all);
  if (threads == all)
    return success();
  return op.emitOpError("expects a block size of ")
         << all << " threads, got " << threads;
}

/// (C3) of registers. The kernel gets the number with which threads begin.
static FailureOr<int64_t> findInitial(WarpRolesOp op, gpu::GPUFuncOp kernel) {
  if (setsRegisters(kernel))
    return op.emitOpError("expects nothing else in its kernel to set the "
                          "number of registers");
  int64_t warps = countAllWarps(op);
  int64_t initial = boundByBlock(kernel, warps * BlockBuilder::kWarp);
  int64_t sum = 0;
  for (auto [count, registers] :
       llvm::zip_equal(op.getWarps(), *op.getRegisters()))
    sum += count * registers;
  if (sum <= warps * initial)
    return initial;
  return op.emitOpError("expects roles to have at most ")
         << warps * initial * BlockBuilder::kWarp << " registers, " << initial
         << " for each of " << warps * BlockBuilder::kWarp << " threads, got "
         << sum * BlockBuilder::kWarp;
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

namespace {

class RoleBranches {
public:
  /// `initial` is the number of registers with which threads begin, if roles
  /// change it.
  RoleBranches(WarpRolesOp op, std::optional<int64_t> initial)
      : op(op), initial(initial), rewriter(op), b(rewriter, op.getLoc()) {
    Value thread = b.toI32(getThread(b));
    // The shuffle proves to ptxas that the number of the warp is uniform.
    warp = getFromLane(b, b.div(thread, BlockBuilder::kWarp), b.index(0));
  }

  void emit() {
    emitRoles(0, op.getWarps().size(), 0, /*isWarpgroup=*/false);
    rewriter.eraseOp(op);
  }

private:
  /// Emits roles `[role, end)`, the first of which begins with warp `first`.
  /// Roles that share warpgroups set their registers together.
  void emitRoles(size_t role, size_t end, int64_t first, bool isWarpgroup) {
    size_t next = role + 1;
    int64_t warps = op.getWarps()[role];
    while (initial && !isWarpgroup && next < end &&
           (first + warps) % kWarpsOfGroup)
      warps += op.getWarps()[next++];
    auto emitFirst = [&] {
      if (initial && !isWarpgroup)
        setRegisters((*op.getRegisters())[role]);
      if (next == role + 1)
        inlineRole(role);
      else
        emitRoles(role, next, first, /*isWarpgroup=*/true);
    };
    if (next == end)
      return emitFirst();
    Value isOfFirst = b.below(warp, b.index(first + warps));
    auto branch = scf::IfOp::create(rewriter, op.getLoc(), isOfFirst,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    emitFirst();
    rewriter.setInsertionPointToStart(branch.elseBlock());
    emitRoles(next, end, first + warps, isWarpgroup);
  }

  void setRegisters(int64_t count) {
    if (count == *initial)
      return;
    NVVM::SetMaxRegisterOp::create(rewriter, op.getLoc(), count,
                                   count > *initial
                                       ? NVVM::SetMaxRegisterAction::increase
                                       : NVVM::SetMaxRegisterAction::decrease);
  }

  void inlineRole(size_t role) {
    Block *body = &op.getRoles()[role].front();
    rewriter.eraseOp(body->getTerminator());
    rewriter.inlineBlockBefore(body, rewriter.getInsertionBlock(),
                               rewriter.getInsertionPoint());
  }

  WarpRolesOp op;
  std::optional<int64_t> initial;
  IRRewriter rewriter;
  IndexBuilder b;
  Value warp;
};

} // namespace

void kvcache::joinWarpRoles(WarpRolesOp op) {
  IRRewriter rewriter(op);
  for (Region &role : op.getRoles()) {
    Block *body = &role.front();
    rewriter.eraseOp(body->getTerminator());
    rewriter.inlineBlockBefore(body, op);
  }
  rewriter.eraseOp(op);
}

LogicalResult kvcache::lowerWarpRoles(WarpRolesOp op, gpu::GPUFuncOp kernel,
                                      const Chip &chip) {
  if (failed(checkPlace(op, kernel)))
    return failure();
  std::optional<int64_t> initial;
  if (op.getRegisters() && hasSetMaxRegisters(chip)) {
    FailureOr<int64_t> found = findInitial(op, kernel);
    if (failed(found))
      return failure();
    initial = *found;
  }
  RoleBranches(op, initial).emit();
  return success();
}
