//===- JIT.cpp - Modules to functions of this process ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JIT.h"
#include "Object.h"
#include "Signature.h"
#include "kvcache/Compile/Guard.h"
#include "kvcache/Runtime/Host.h"
#include "kvcache/Runtime/TVMFFI.h"
#include "kvcache/Support/RuntimeCalls.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/CRunnerUtils.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <dlfcn.h>

using namespace mlir;
using namespace mlir::kvcache::python;

/// What the names of C wrappers begin with.
static constexpr StringLiteral kWrapperPrefix("_mlir_ciface_");

/// What the names of TVM-FFI wrappers begin with.
static constexpr StringLiteral kTVMFFIPrefix("__tvm_ffi_");

#if defined(__x86_64__)
// Conversions to and from f16 that the code generator may call. They are in the
// compiler's static run-time library, where compiled code does not find them.
extern "C" {
void __extendhfsf2();
void __truncsfhf2();
void __truncdfhf2();
}
#endif

/// MLIR's library of helper functions, with those that it needs itself.
/// Told by an address and not by a name: only the copy that this library is
/// linked to works with the one LLVM of the process.
std::string kvcache::python::getHelperLibrary() {
  Dl_info info;
  bool found = dladdr(reinterpret_cast<void *>(&memrefCopy), &info);
  return found ? info.dli_fname : "";
}

/// A function of MLIR's helpers, or null. The library must not become global,
/// as the execution engine would make it with the LLVM that it needs: libraries
/// with an LLVM of their own that load later, such as Triton's, would then call
/// ours.
static void *lookupHelper(StringRef name) {
  static void *const handle = dlopen(
      kvcache::python::getHelperLibrary().c_str(), RTLD_NOW | RTLD_LOCAL);
  return handle ? dlsym(handle, name.str().c_str()) : nullptr;
}

/// Conversions to bf16 that the code generator may call, which no module names.
static constexpr StringLiteral kConversions[] = {"__truncsfbf2",
                                                 "__truncdfbf2"};

/// Functions of this library that compiled code may call.
static const std::pair<StringRef, void (*)()> kFunctions[] = {
    {"kvcacheCallTVMFFI", reinterpret_cast<void (*)()>(&kvcacheCallTVMFFI)},
    {"kvcacheCheckFailed", reinterpret_cast<void (*)()>(&kvcacheCheckFailed)},
    {"kvcacheDeviceFailed", reinterpret_cast<void (*)()>(&kvcacheDeviceFailed)},
    {"kvcacheHostAlloc", reinterpret_cast<void (*)()>(&kvcacheHostAlloc)},
    {"kvcacheHostFree", reinterpret_cast<void (*)()>(&kvcacheHostFree)},
    {"kvcacheHostNoteDeviceAlloc",
     reinterpret_cast<void (*)()>(&kvcacheHostNoteDeviceAlloc)},
    {"kvcacheHostNoteDeviceFree",
     reinterpret_cast<void (*)()>(&kvcacheHostNoteDeviceFree)},
#if defined(__x86_64__)
    {"__extendhfsf2", &__extendhfsf2},
    {"__truncsfhf2", &__truncsfhf2},
    {"__truncdfhf2", &__truncdfhf2},
#endif
};

namespace {
/// The functions of this library and of a device that a module calls.
class Symbols {
public:
  /// `device` may be null.
  explicit Symbols(const DeviceLibrary *device) : device(device) {
    for (auto [name, function] : kFunctions)
      addresses[name] = reinterpret_cast<void *>(function);
    for (StringRef name : kConversions)
      addLookedUp(name, lookupHelper(name));
  }

  /// Looks up what the module calls and doesn't define. Reports what is defined
  /// nowhere: the engine would print the names rather than return them.
  LogicalResult add(ModuleOp module);

  llvm::orc::SymbolMap get(llvm::orc::MangleAndInterner mangle) const {
    llvm::orc::SymbolMap symbols;
    for (const auto &entry : addresses)
      symbols[mangle(entry.getKey())] = {
          llvm::orc::ExecutorAddr::fromPtr(entry.getValue()),
          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    return symbols;
  }

private:
  bool find(StringRef name);

  /// Returns whether there is such a function.
  bool addLookedUp(StringRef name, void *address) {
    if (address)
      addresses[name] = address;
    return address;
  }

  const DeviceLibrary *device;
  llvm::StringMap<void *> addresses;
};
} // namespace

bool Symbols::find(StringRef name) {
  if (addresses.contains(name))
    return true;
  // Only what is ours: the library finds the C library's as well.
  void *address =
      device && name.starts_with("kvcache") ? device->lookup(name) : nullptr;
  return addLookedUp(name, address) ||
         llvm::sys::DynamicLibrary::SearchForAddressOfSymbol(name.str()) ||
         addLookedUp(name, lookupHelper(name));
}

/// All at once: a walk over the module for each function takes longer than
/// many passes.
static llvm::DenseSet<StringRef> getUsedSymbols(ModuleOp module) {
  llvm::DenseSet<StringRef> used;
  if (auto uses = SymbolTable::getSymbolUses(&module.getBodyRegion()))
    for (const SymbolTable::SymbolUse &use : *uses)
      used.insert(use.getSymbolRef().getRootReference());
  return used;
}

LogicalResult Symbols::add(ModuleOp module) {
  static const bool isProcessSearched =
      !llvm::sys::DynamicLibrary::LoadLibraryPermanently(nullptr);
  (void)isProcessSearched;
  llvm::DenseSet<StringRef> used = getUsedSymbols(module);
  bool failed = false;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    StringRef name = function.getName();
    if (!function.isExternal() || name.starts_with("llvm.") ||
        !used.contains(name) || find(name))
      continue;
    name.consume_front(kWrapperPrefix);
    function.emitError() << "'" << name << "' is called but defined nowhere";
    failed = true;
  }
  return failure(failed);
}

/// Only the wrappers are looked up. The engine makes an interface for each of
/// the other functions, too, unless nobody else can call them.
static void hideFunctions(ModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal() &&
        !function.getName().starts_with(kTVMFFIPrefix) &&
        function.getLinkage() == LLVM::Linkage::External &&
        function.getVisibility_() == LLVM::Visibility::Default)
      function.setLinkage(LLVM::Linkage::Internal);
}

void kvcache::python::initializeNativeTarget() {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(llvm::CodeGenOptLevel optLevel) {
  initializeNativeTarget();
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
  auto transformer =
      makeOptimizingTransformer(optLevel, /*sizeLevel=*/0, machine->get());
  ExecutionEngineOptions options;
  options.transformer = transformer;
  options.jitCodeGenOptLevel = codeGenOptLevel;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  return ExecutionEngine::create(module, options, std::move(*machine));
}

JIT::~JIT() {
  for (const KVCacheKernel &kernel : kernels)
    device->unloadModule(kernel.binary);
}

JIT::CreateResult JIT::create(std::string source, std::string filename,
                              Options options) {
  return runGuarded<CreateResult>([source = std::move(source),
                                   filename = std::move(filename),
                                   options = std::move(options)] {
    return createUnguarded(source, filename, options);
  });
}

JIT::CreateResult JIT::createUnguarded(StringRef contents, StringRef filename,
                                       const Options &options) {
  Source source(contents, filename);
  CreateResult result;
  if (source.getModule()) {
    auto jit = std::make_unique<JIT>();
    jit->describeFunctions(source.getModule());
    if (succeeded(source.run(options.passes)) &&
        succeeded(jit->compile(source, options)))
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
    wrappers[function.getName()] = nullptr;
  }
  description = llvm::formatv("{0}", llvm::json::Value(std::move(described)));
}

LogicalResult JIT::compile(Source &source, const Options &options) {
  DiagnosticCollector &diagnostics = source.getDiagnostics();
  if (!options.device.empty()) {
    auto loaded = DeviceLibrary::get(options.device);
    if (!loaded) {
      diagnostics.addError(toString(loaded.takeError()));
      return failure();
    }
    device = *loaded;
  }
  auto table = source.getModule().lookupSymbol<LLVM::GlobalOp>(
      kvcache::kLaunchedKernels);
  bool hasKernels = device && table;
  if (hasKernels)
    table.setLinkage(LLVM::Linkage::External);
  Symbols symbols(device);
  if (failed(symbols.add(source.getModule())))
    return failure();
  hideFunctions(source.getModule());
  auto created = createEngine(source.getModule(), options.optLevel);
  if (!created) {
    diagnostics.addError(toString(created.takeError()));
    return failure();
  }
  engine = std::move(*created);
  engine->registerSymbols([&](auto mangle) { return symbols.get(mangle); });
  if (failed(lookupWrappers(diagnostics)))
    return failure();
  engine->initialize();
  return success(!hasKernels || succeeded(lookupKernels(diagnostics)));
}

LogicalResult JIT::lookupKernels(DiagnosticCollector &diagnostics) {
  auto found = engine->lookup(kLaunchedKernels);
  if (!found) {
    diagnostics.addError(toString(found.takeError()));
    return failure();
  }
  const auto &table = *static_cast<const KVCacheKernels *>(*found);
  kernels = llvm::ArrayRef(table.kernels, table.numKernels);
  return success();
}

LogicalResult JIT::lookupWrappers(DiagnosticCollector &diagnostics) {
  for (auto &entry : wrappers) {
    auto found = engine->lookup((kTVMFFIPrefix + entry.getKey()).str());
    if (!found) {
      diagnostics.addError(toString(found.takeError()));
      return failure();
    }
    entry.getValue() = *found;
  }
  return success();
}

std::string JIT::load(int32_t number) const {
  if (!device)
    return "";
  KVCacheScope outer;
  if (device->enterScope(number, /*stream=*/nullptr, &outer))
    return device->getLastError();
  std::string error;
  for (const KVCacheKernel &kernel : kernels)
    if (error.empty() && device->loadKernel(&kernel))
      error = device->getLastError();
  device->leaveScope(&outer);
  return error;
}

std::string JIT::takeMeter() const { return device ? device->takeMeter() : ""; }
