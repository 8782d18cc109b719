//===- Source.cpp - A parsed module and its context -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Compile/Source.h"

#include "kvcache/Compile/SourceFormats.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/InitAll.h"
#include "kvcache/Support/Nesting.h"
#include "kvcache/Support/Verification.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::kvcache;

const DialectRegistry &kvcache::getRegistry() {
  static const DialectRegistry registry = [] {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }();
  return registry;
}

Source::Source(StringRef contents, StringRef filename, SourceKind kind)
    : context(leaseContext(contents)), diagnostics(context->get()) {
  const SourceFormat *format =
      kind == SourceKind::Kernels ? findSourceFormat(contents) : nullptr;
  if (format)
    module = format->import(contents, filename, context->get());
  else
    parse(contents, filename);
  if (!module && !diagnostics.hasError())
    diagnostics.addError("the source could not be parsed");
}

/// The names that the text gives the arguments of functions, which the IR
/// itself does not keep.
static void nameArguments(ModuleOp module, const AsmParserState &state) {
  StringRef attribute = KVCacheDialect::kArgNameAttr;
  module.walk([&](FunctionOpInterface function) {
    if (function.isExternal() || !isa<func::FuncOp, gpu::GPUFuncOp>(function))
      return;
    const auto *block = state.getBlockDef(&function.front());
    if (!block)
      return;
    for (auto [index, definition] : llvm::enumerate(block->arguments)) {
      SMRange range = definition.loc;
      if (!range.isValid() || index >= function.getNumArguments() ||
          function.getArgAttr(index, attribute))
        continue;
      StringRef name(range.Start.getPointer(),
                     range.End.getPointer() - range.Start.getPointer());
      if (name.consume_front("%"))
        function.setArgAttr(index, attribute,
                            StringAttr::get(module.getContext(), name));
    }
  });
}

void Source::parse(StringRef contents, StringRef filename) {
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(contents, filename);
  bool isText = !isBytecode(*buffer);
  StringRef text = isText ? buffer->getBuffer() : StringRef();
  llvm::SourceMgr sourceMgr;
  sourceMgr.AddNewSourceBuffer(std::move(buffer), SMLoc());
  if (std::optional<Unreadable> found = findUnreadable(text)) {
    auto [line, column] =
        sourceMgr.getLineAndColumn(SMLoc::getFromPointer(found->place));
    emitError(FileLineColLoc::get(context->get(), filename, line, column))
        << found->reason;
    return;
  }

  Block block;
  AsmParserState state;
  ParserConfig config(context->get(), /*verifyAfterParse=*/false);
  LogicalResult parsed =
      isText ? parseAsmSourceFile(sourceMgr, &block, config, &state)
             : parseSourceFile(sourceMgr, &block, config);
  if (failed(parsed))
    return;
  module = mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
      &block, context->get(),
      FileLineColLoc::get(context->get(), filename, 0, 0));
  if (module &&
      (failed(checkBeforeVerification(*module)) || failed(verify(*module))))
    module = nullptr;
  if (module && isText)
    nameArguments(*module, state);
}

LogicalResult Source::run(StringRef passes) {
  std::string message;
  if (PassManager *pipeline = context->getPipeline(passes, message))
    return run(*pipeline);
  diagnostics.addError(StringRef(message).trim());
  return failure();
}

LogicalResult Source::run(function_ref<void(OpPassManager &)> build) {
  auto passManager = PassManager::on<ModuleOp>(context->get());
  build(passManager);
  passManager.enableVerifier(false);
  return run(passManager);
}

LogicalResult Source::run(StringRef key,
                          function_ref<void(OpPassManager &)> build) {
  return run(context->getPipeline(key, build));
}

LogicalResult Source::run(PassManager &passManager) {
  if (succeeded(passManager.run(*module)))
    return success();
  if (!diagnostics.hasError())
    diagnostics.addError("a pass failed without saying why");
  return failure();
}
