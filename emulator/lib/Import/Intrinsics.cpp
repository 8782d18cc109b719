//===- Intrinsics.cpp - Intrinsics as instructions of PTX -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Intrinsics.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Names without `llvm.nvvm.`, and the instruction. Upstream's import leaves
/// them as calls.
static constexpr std::pair<StringLiteral, StringLiteral> kInstructions[] = {
    {"barrier0", "bar.sync 0;"},
    {"barrier.cta.sync.aligned.all", "barrier.sync.aligned $0;"},
    {"barrier.cta.sync.all", "barrier.sync $0;"},
    {"barrier.cta.sync.aligned.count", "barrier.sync.aligned $0, $1;"},
    {"barrier.cta.sync.count", "barrier.sync $0, $1;"},
    {"barrier.cta.arrive.aligned.count", "barrier.arrive.aligned $0, $1;"},
    {"barrier.cta.arrive.count", "barrier.arrive $0, $1;"},
    {"barrier.cta.red.popc.aligned.all", "bar.red.popc.u32 $0, $1, $2;"},
    {"barrier.cta.red.and.aligned.all", "bar.red.and.pred $0, $1, $2;"},
    {"barrier.cta.red.or.aligned.all", "bar.red.or.pred $0, $1, $2;"},
    {"bar.warp.sync", "bar.warp.sync $0;"},
    {"barrier.cluster.arrive", "barrier.cluster.arrive;"},
    {"barrier.cluster.arrive.aligned", "barrier.cluster.arrive.aligned;"},
    {"barrier.cluster.arrive.relaxed", "barrier.cluster.arrive.relaxed;"},
    {"barrier.cluster.arrive.relaxed.aligned",
     "barrier.cluster.arrive.relaxed.aligned;"},
    {"barrier.cluster.wait", "barrier.cluster.wait;"},
    {"barrier.cluster.wait.aligned", "barrier.cluster.wait.aligned;"},
    {"membar.cta", "membar.cta;"},
    {"membar.gl", "membar.gl;"},
    {"membar.sys", "membar.sys;"},
    {"fence.sc.cluster", "fence.sc.cluster;"},
    {"fence.mbarrier_init.release.cluster",
     "fence.mbarrier_init.release.cluster;"},
    {"fence.proxy.alias", "fence.proxy.alias;"},
    {"fence.proxy.async", "fence.proxy.async;"},
    {"fence.proxy.async.global", "fence.proxy.async.global;"},
    {"fence.proxy.async.shared_cta", "fence.proxy.async.shared::cta;"},
    {"fence.proxy.async.shared_cluster", "fence.proxy.async.shared::cluster;"},
    {"vote.all.sync", "vote.sync.all.pred $0, $2, $1;"},
    {"vote.any.sync", "vote.sync.any.pred $0, $2, $1;"},
    {"vote.uni.sync", "vote.sync.uni.pred $0, $2, $1;"},
    {"vote.ballot.sync", "vote.sync.ballot.b32 $0, $2, $1;"},
    {"match.any.sync.i32", "match.any.sync.b32 $0, $2, $1;"},
    {"match.any.sync.i64", "match.any.sync.b64 $0, $2, $1;"},
    {"match.all.sync.i32p", "match.all.sync.b32 $0|$1, $3, $2;"},
    {"match.all.sync.i64p", "match.all.sync.b64 $0|$1, $3, $2;"},
    {"redux.sync.add", "redux.sync.add.s32 $0, $1, $2;"},
    {"redux.sync.min", "redux.sync.min.s32 $0, $1, $2;"},
    {"redux.sync.max", "redux.sync.max.s32 $0, $1, $2;"},
    {"redux.sync.umin", "redux.sync.min.u32 $0, $1, $2;"},
    {"redux.sync.umax", "redux.sync.max.u32 $0, $1, $2;"},
    {"redux.sync.and", "redux.sync.and.b32 $0, $1, $2;"},
    {"redux.sync.or", "redux.sync.or.b32 $0, $1, $2;"},
    {"redux.sync.xor", "redux.sync.xor.b32 $0, $1, $2;"},
    {"redux.sync.fmin", "redux.sync.min.f32 $0, $1, $2;"},
    {"redux.sync.fmax", "redux.sync.max.f32 $0, $1, $2;"},
    {"d2i.lo", "{.reg .b32 high; mov.b64 {$0, high}, $1;}"},
    {"d2i.hi", "{.reg .b32 low; mov.b64 {low, $0}, $1;}"},
    {"lohi.i2d", "mov.b64 $0, {$1, $2};"},
    {"idp4a.s.s", "dp4a.s32.s32 $0, $1, $2, $3;"},
    {"idp4a.s.u", "dp4a.s32.u32 $0, $1, $2, $3;"},
    {"idp4a.u.s", "dp4a.u32.s32 $0, $1, $2, $3;"},
    {"idp4a.u.u", "dp4a.u32.u32 $0, $1, $2, $3;"},
    {"elect.sync", "elect.sync $0|$1, $2;"},
    {"activemask", "activemask.b32 $0;"},
    {"cp.async.commit.group", "cp.async.commit_group;"},
    {"cp.async.wait.group", "cp.async.wait_group $0;"},
    {"cp.async.wait.all", "cp.async.wait_all;"},
    {"cp.async.mbarrier.arrive", "cp.async.mbarrier.arrive.b64 [$0];"},
    {"cp.async.mbarrier.arrive.shared",
     "cp.async.mbarrier.arrive.shared.b64 [$0];"},
    {"cp.async.mbarrier.arrive.noinc",
     "cp.async.mbarrier.arrive.noinc.b64 [$0];"},
    {"cp.async.mbarrier.arrive.noinc.shared",
     "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];"},
    {"cp.async.bulk.commit.group", "cp.async.bulk.commit_group;"},
    {"cp.async.bulk.wait.group", "cp.async.bulk.wait_group $0;"},
    {"cp.async.bulk.wait.group.read", "cp.async.bulk.wait_group.read $0;"},
    {"mbarrier.init", "mbarrier.init.b64 [$0], $1;"},
    {"mbarrier.init.shared", "mbarrier.init.shared.b64 [$0], $1;"},
    {"mbarrier.inval", "mbarrier.inval.b64 [$0];"},
    {"mbarrier.inval.shared", "mbarrier.inval.shared.b64 [$0];"},
    {"mbarrier.arrive", "mbarrier.arrive.b64 $0, [$1];"},
    {"mbarrier.arrive.shared", "mbarrier.arrive.shared.b64 $0, [$1];"},
    {"mbarrier.arrive.noComplete",
     "mbarrier.arrive.noComplete.b64 $0, [$1], $2;"},
    {"mbarrier.arrive.noComplete.shared",
     "mbarrier.arrive.noComplete.shared.b64 $0, [$1], $2;"},
    {"mbarrier.arrive.drop", "mbarrier.arrive_drop.b64 $0, [$1];"},
    {"mbarrier.arrive.drop.shared",
     "mbarrier.arrive_drop.shared.b64 $0, [$1];"},
    {"mbarrier.test.wait", "mbarrier.test_wait.b64 $0, [$1], $2;"},
    {"mbarrier.test.wait.shared",
     "mbarrier.test_wait.shared.b64 $0, [$1], $2;"},
    {"mapa", "mapa.u64 $0, $1, $2;"},
    {"mapa.shared.cluster", "mapa.shared::cluster.u32 $0, $1, $2;"},
    {"griddepcontrol.wait", "griddepcontrol.wait;"},
    {"griddepcontrol.launch.dependents", "griddepcontrol.launch_dependents;"},
    {"wgmma.fence.sync.aligned", "wgmma.fence.sync.aligned;"},
    {"wgmma.commit_group.sync.aligned", "wgmma.commit_group.sync.aligned;"},
    {"wgmma.wait_group.sync.aligned", "wgmma.wait_group.sync.aligned $0;"},
    {"tcgen05.wait.ld", "tcgen05.wait::ld.sync.aligned;"},
    {"tcgen05.wait.st", "tcgen05.wait::st.sync.aligned;"},
    {"tcgen05.fence.before.thread.sync", "tcgen05.fence::before_thread_sync;"},
    {"tcgen05.fence.after.thread.sync", "tcgen05.fence::after_thread_sync;"},
};

/// `{$0, $1}`, or `$0` for one.
static std::string listOperands(size_t first, size_t count) {
  auto names = llvm::map_range(llvm::seq(first, first + count), [](size_t i) {
    return "$" + std::to_string(i);
  });
  return "{" + llvm::join(names, ", ") + "}";
}

/// shfl.sync.bfly.i32(mask, value, lane, clamp), and with a predicate.
static std::optional<std::string> getShuffle(StringRef name) {
  if (!name.consume_front("shfl.sync."))
    return std::nullopt;
  auto [kind, type] = name.split('.');
  std::string base = "shfl.sync." + kind.str() + ".b32 ";
  return base + (type.ends_with("p") ? "$0|$1, $3, $4, $5, $2;"
                                     : "$0, $2, $3, $4, $1;");
}

/// cp.async.ca.shared.global.16(to, from), and with the bytes of the source.
static std::optional<std::string> getThreadCopy(StringRef name) {
  bool isCopy = name.consume_front("cp.async.ca.shared.global.");
  StringRef kind = isCopy ? "ca" : "cg";
  if (!isCopy && !name.consume_front("cp.async.cg.shared.global."))
    return std::nullopt;
  auto [bytes, rest] = name.split('.');
  return "cp.async." + kind.str() + ".shared.global [$0], [$1], " +
         bytes.str() + (rest == "s" ? ", $2;" : ";");
}

/// ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3 and stmatrix: the name of the
/// instruction with the space of the pointer.
static std::optional<std::string> getMatrixAccess(StringRef name, size_t count,
                                                  size_t numArguments) {
  bool isLoad = name.starts_with("ldmatrix.");
  if (!isLoad && !name.starts_with("stmatrix."))
    return std::nullopt;
  name = name.rsplit(".p").first;
  auto [front, element] = name.rsplit('.');
  std::string base = front.str() + ".shared." + element.str() + " ";
  if (isLoad)
    return base + listOperands(0, count) + ", [" + "$" + std::to_string(count) +
           "];";
  return base + "[$0], " + listOperands(1, numArguments - 1) + ";";
}

/// The types of D, A, B and C that the end of an intrinsic's name stands for.
static std::string getMmaTypes(StringRef types) {
  auto [first, second] = types.split('.');
  if (types == "bf16" || types == "tf32")
    return ("f32." + types + "." + types + ".f32").str();
  if (second == "f16" || second == "f32")
    return (first + ".f16.f16." + second).str();
  bool isInteger = first.size() == 2 && (first[0] == 's' || first[0] == 'u');
  if (isInteger)
    return ("s32." + first + "." + (second.empty() ? first : second) + ".s32")
        .str();
  return types.str();
}

/// mma.m16n8k16.row.col.bf16(A, B, C): the registers of A and B follow from the
/// shape and the types.
static std::optional<std::string> getMma(StringRef name, size_t numResults,
                                         size_t numArguments) {
  if (!name.consume_front("mma."))
    return std::nullopt;
  auto [shape, rest] = name.split(".row.col.");
  std::string types = getMmaTypes(rest);
  SmallVector<StringRef> parts;
  StringRef(types).split(parts, '.');
  constexpr size_t numTypes = 4;
  // The emulator supports a name with all types.
  if (types == rest || parts.size() != numTypes || numArguments < 3)
    return std::nullopt;
  // D and C have as many elements; one may have them in pairs.
  size_t numC = numResults;
  if (parts[0] == "f16" && parts[3] == "f32")
    numC *= 2;
  else if (parts[0] == "f32" && parts[3] == "f16")
    numC /= 2;
  if (numC >= numArguments)
    return std::nullopt;
  // m16n8 has twice as many registers of A as of B, m8n8 as many.
  size_t both = numArguments - numC;
  size_t numB = shape.starts_with("m16") ? both / 3 : both / 2;
  size_t a = numResults, b = a + both - numB, c = a + both;
  return "mma.sync.aligned." + shape.str() + ".row.col." + types + " " +
         listOperands(0, numResults) + ", " + listOperands(a, b - a) + ", " +
         listOperands(b, c - b) + ", " + listOperands(c, numC) + ";";
}

std::optional<std::string> kvcache::getInstruction(LLVM::CallIntrinsicOp op) {
  StringRef name = op.getIntrin();
  if (!name.consume_front("llvm.nvvm."))
    return std::nullopt;
  const auto *found = llvm::find_if(
      kInstructions, [&](const auto &entry) { return entry.first == name; });
  if (found != std::end(kInstructions))
    return found->second.str();
  size_t numResults = op->getNumResults();
  if (numResults == 1)
    if (auto structure =
            dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType()))
      numResults = structure.getBody().size();
  size_t numArguments = op.getArgs().size();
  if (std::optional<std::string> text = getShuffle(name))
    return text;
  if (std::optional<std::string> text = getThreadCopy(name))
    return text;
  if (std::optional<std::string> text =
          getMatrixAccess(name, numResults, numArguments))
    return text;
  return getMma(name, numResults, numArguments);
}
