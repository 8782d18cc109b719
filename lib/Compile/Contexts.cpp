//===- Contexts.cpp - Contexts that are used again ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Compile/Contexts.h"

#include "kvcache/Compile/Source.h"
#include "kvcache/Compile/SourceFormats.h"
#include "kvcache/InitAll.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/MemoryBuffer.h"

#include <mutex>

using namespace mlir;
using namespace mlir::kvcache;

WarmContext::WarmContext()
    : context(getRegistry(), MLIRContext::Threading::DISABLED) {
  // The op in full would bury the message.
  context.printOpOnDiagnostic(false);
  // Pipelines keep the names of the ops that they nest on. A dialect that is
  // loaded after a pipeline has run would replace and free these.
  context.loadDialect<func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect>();
}

WarmContext::~WarmContext() = default;

PassManager &
WarmContext::getPipeline(StringRef key,
                         function_ref<void(OpPassManager &)> build) {
  std::unique_ptr<PassManager> &known = pipelines[key];
  if (!known) {
    known =
        std::make_unique<PassManager>(&context, ModuleOp::getOperationName());
    build(*known);
    // The passes verify where needed.
    known->enableVerifier(false);
  }
  return *known;
}

PassManager *WarmContext::getPipeline(StringRef passes, std::string &message) {
  std::unique_ptr<PassManager> &known = pipelines[passes];
  if (known)
    return known.get();
  registerAllPasses();
  auto made =
      std::make_unique<PassManager>(&context, ModuleOp::getOperationName());
  llvm::raw_string_ostream stream(message);
  if (failed(parsePassPipeline(passes, *made, stream)))
    return nullptr;
  // The passes verify where needed.
  made->enableVerifier(false);
  known = std::move(made);
  return known.get();
}

namespace mlir::kvcache {
/// The unused contexts.
class ContextPool {
public:
  ContextLease take(StringRef contents);
  void giveBack(std::unique_ptr<WarmContext> context);

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<WarmContext>> idle;
};
} // namespace mlir::kvcache

/// Never destroyed: threads may still compile when the process ends.
static ContextPool &getPool() {
  static auto *pool = new ContextPool;
  return *pool;
}

/// Structures and resources may have names, each of which has one meaning in a
/// context. Only MLIR's text is searched for them.
static bool mayNameThings(StringRef contents) {
  return isBytecode(llvm::MemoryBufferRef(contents, "")) ||
         findSourceFormat(contents) || contents.contains("struct") ||
         contents.contains("resource");
}

ContextLease ContextPool::take(StringRef contents) {
  if (mayNameThings(contents)) {
    ContextLease own(new WarmContext);
    own->isShared = false;
    return own;
  }
  std::unique_ptr<WarmContext> context;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!idle.empty()) {
      context = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!context)
    context = std::make_unique<WarmContext>();
  ++context->numSources;
  context->numBytes += contents.size();
  return ContextLease(context.release());
}

/// A context keeps all types, attributes and locations that it has seen, so it
/// is dropped after some sources, or after a large one.
void ContextPool::giveBack(std::unique_ptr<WarmContext> context) {
  constexpr unsigned maxSources = 64;
  constexpr size_t maxBytes = 1 << 20;
  constexpr size_t maxIdle = 4;
  if (!context->isShared || context->numSources >= maxSources ||
      context->numBytes >= maxBytes)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  if (idle.size() < maxIdle)
    idle.push_back(std::move(context));
}

void ContextReturn::operator()(WarmContext *context) const {
  getPool().giveBack(std::unique_ptr<WarmContext>(context));
}

ContextLease kvcache::leaseContext(StringRef contents) {
  return getPool().take(contents);
}
