//===- JIT.cpp - Modules to functions of this process ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JIT.h"
#include "CheckedCall.h"
#include "Guard.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <dlfcn.h>

using namespace mlir;
using namespace mlir::kvcache::python;

/// What the names of C wrappers begin with.
static constexpr StringLiteral kWrapperPrefix("_mlir_ciface_");

#if defined(__x86_64__)
// Conversions to and from f16 that the code generator may call. They are in the
// compiler's static run-time library, where compiled code does not find them.
extern "C" {
void __extendhfsf2();
void __truncsfhf2();
void __truncdfhf2();
}
#endif

/// MLIR's libraries of helper functions, which lie beside MLIR's own.
static std::vector<std::string> getHelperLibraries() {
  std::vector<std::string> libraries;
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&makeOptimizingTransformer), &info))
    return libraries;
  SmallString<256> folder;
  if (llvm::sys::fs::real_path(info.dli_fname, folder))
    return libraries;
  llvm::sys::path::remove_filename(folder);
  for (StringRef name : {"libmlir_float16_utils", "libmlir_c_runner_utils"}) {
    SmallString<256> path(folder);
    llvm::sys::path::append(path, name + KVCACHE_SHARED_LIBRARY_SUFFIX);
    if (llvm::sys::fs::exists(path))
      libraries.push_back(path.str().str());
  }
  return libraries;
}

/// Functions of this library that compiled code may call.
static const std::pair<StringRef, void (*)()> kFunctions[] = {
    {"kvcacheCheckFailed", reinterpret_cast<void (*)()>(&checkFailed)},
    {"kvcacheDeviceFailed", reinterpret_cast<void (*)()>(&deviceFailed)},
#if defined(__x86_64__)
    {"__extendhfsf2", &__extendhfsf2},
    {"__truncsfhf2", &__truncsfhf2},
    {"__truncdfhf2", &__truncdfhf2},
#endif
};

static llvm::orc::SymbolMap getSymbols(llvm::orc::MangleAndInterner mangle) {
  llvm::orc::SymbolMap symbols;
  for (auto [name, function] : kFunctions)
    symbols[mangle(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                             llvm::JITSymbolFlags::Exported |
                                 llvm::JITSymbolFlags::Callable};
  return symbols;
}

/// Reports functions that are called and defined nowhere. The engine would
/// print their names rather than return them.
static LogicalResult checkSymbols(ModuleOp module) {
  static const bool hasProcess =
      !llvm::sys::DynamicLibrary::LoadLibraryPermanently(nullptr);
  (void)hasProcess;
  bool failed = false;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    StringRef name = function.getName();
    if (!function.isExternal() || name.starts_with("llvm.") ||
        SymbolTable::symbolKnownUseEmpty(function, module) ||
        llvm::is_contained(llvm::make_first_range(kFunctions), name) ||
        llvm::sys::DynamicLibrary::SearchForAddressOfSymbol(name.str()))
      continue;
    name.consume_front(kWrapperPrefix);
    function.emitError() << "'" << name << "' is called but defined nowhere";
    failed = true;
  }
  return failure(failed);
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(llvm::CodeGenOptLevel optLevel) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  builder->setCodeGenOptLevel(optLevel);
  return builder->createTargetMachine();
}

static llvm::Expected<std::unique_ptr<ExecutionEngine>>
createEngine(ModuleOp module, unsigned optLevel) {
  llvm::CodeGenOptLevel codeGenOptLevel =
      llvm::CodeGenOpt::getLevel(optLevel).value_or(
          llvm::CodeGenOptLevel::Default);
  auto machine = createHostMachine(codeGenOptLevel);
  if (!machine)
    return machine.takeError();
  static const std::vector<std::string> libraries = getHelperLibraries();
  SmallVector<StringRef> libraryPaths(libraries.begin(), libraries.end());
  auto transformer =
      makeOptimizingTransformer(optLevel, /*sizeLevel=*/0, machine->get());
  ExecutionEngineOptions options;
  options.transformer = transformer;
  options.jitCodeGenOptLevel = codeGenOptLevel;
  options.sharedLibPaths = libraryPaths;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  return ExecutionEngine::create(module, options, std::move(*machine));
}

JIT::CreateResult JIT::create(std::string source, std::string filename,
                              std::string passes, unsigned optLevel) {
  return runGuarded<CreateResult>([source = std::move(source),
                                   filename = std::move(filename),
                                   passes = std::move(passes), optLevel] {
    return createUnguarded(source, filename, passes, optLevel);
  });
}

JIT::CreateResult JIT::createUnguarded(StringRef contents, StringRef filename,
                                       StringRef passes, unsigned optLevel) {
  Source source(contents, filename);
  CreateResult result;
  if (source.getModule()) {
    auto jit = std::make_unique<JIT>();
    jit->describeFunctions(source.getModule());
    if (succeeded(source.run(passes)) &&
        succeeded(jit->compile(source, optLevel)))
      result.jit = std::move(jit);
  }
  result.diagnostics = source.getDiagnostics().take();
  return result;
}

void JIT::describeFunctions(ModuleOp module) {
  llvm::json::Array described;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || !function.isPublic())
      continue;
    described.push_back(describe(function));
    if (std::optional<CallLayout> layout = getCallLayout(function))
      functions[function.getName()].layout = std::move(*layout);
  }
  description = llvm::formatv("{0}", llvm::json::Value(std::move(described)));
}

LogicalResult JIT::compile(Source &source, unsigned optLevel) {
  auto created = createEngine(source.getModule(), optLevel);
  if (!created) {
    source.getDiagnostics().addError(toString(created.takeError()));
    return failure();
  }
  engine = std::move(*created);
  engine->registerSymbols(getSymbols);
  if (failed(checkSymbols(source.getModule())))
    return failure();
  for (auto &entry : functions) {
    auto found = engine->lookupPacked((kWrapperPrefix + entry.getKey()).str());
    if (!found) {
      source.getDiagnostics().addError(toString(found.takeError()));
      return failure();
    }
    entry.getValue().entry = *found;
  }
  engine->initialize();
  return success();
}

std::optional<JIT::CallResult>
JIT::call(StringRef name, MutableArrayRef<uint64_t> frame) const {
  auto found = functions.find(name);
  if (found == functions.end())
    return std::nullopt;
  const auto &[layout, entry] = found->second;
  if (frame.size() != layout.getNumWords())
    return std::nullopt;

  // Operands are passed by address; what is passed for a memref is itself the
  // address of its descriptor, and likewise for the structure of the results.
  std::vector<uint64_t> results(layout.results.size());
  void *resultStruct = results.data();
  SmallVector<void *> descriptors;
  descriptors.reserve(layout.arguments.size());
  SmallVector<void *> operands;
  if (results.size() > 1)
    operands.push_back(&resultStruct);
  uint64_t *words = frame.data();
  for (const CallLayout::Argument &argument : layout.arguments) {
    if (argument.isMemRef) {
      descriptors.push_back(words);
      operands.push_back(&descriptors.back());
    } else {
      operands.push_back(words);
    }
    words += argument.numWords;
  }
  if (results.size() == 1)
    operands.push_back(resultStruct);

  CallResult result;
  result.failedCheck = callChecked(entry, operands.data());
  for (const CallLayout::Result &field : layout.results) {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<char *>(resultStruct) + field.offset,
                field.size);
    result.results.push_back(word);
  }
  return result;
}
