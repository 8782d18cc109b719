//===- JIT.cpp - Modules to functions of this process ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JIT.h"
#include "HostProcessor.h"
#include "Object.h"
#include "Signature.h"
#include "kvcache/Compile/Guard.h"
#include "kvcache/Import/Passes.h"
#include "kvcache/Runtime/Host.h"
#include "kvcache/Runtime/TVMFFI.h"
#include "kvcache/Support/RuntimeCalls.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/CRunnerUtils.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/SectionMemoryManager.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include <dlfcn.h>

using namespace mlir;
using namespace mlir::kvcache::python;

/// The prefix of the names of C wrappers.
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

/// MLIR's library of helper functions, with those that it needs itself.
/// Identified by an address and not by a name: only the copy that this library
/// is linked to works with the one LLVM of the process.
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
    {"kvcachePrint", reinterpret_cast<void (*)()>(&kvcachePrint)},
    {"kvcacheCheckFailed", reinterpret_cast<void (*)()>(&kvcacheCheckFailed)},
    {"kvcacheDeviceFailed", reinterpret_cast<void (*)()>(&kvcacheDeviceFailed)},
    {"kvcacheHostAlloc", reinterpret_cast<void (*)()>(&kvcacheHostAlloc)},
    {"kvcacheHostFree", reinterpret_cast<void (*)()>(&kvcacheHostFree)},
    {"kvcacheHostNoteDeviceAlloc",
     reinterpret_cast<void (*)()>(&kvcacheHostNoteDeviceAlloc)},
    {"kvcacheHostNoteDeviceFree",
     reinterpret_cast<void (*)()>(&kvcacheHostNoteDeviceFree)},
    {"kvcacheParallelFor", reinterpret_cast<void (*)()>(&kvcacheParallelFor)},
#if defined(__x86_64__)
    {"__extendhfsf2", &__extendhfsf2},
    {"__truncsfhf2", &__truncsfhf2},
    {"__truncdfhf2", &__truncdfhf2},
#endif
};

namespace {
/// The functions of this process and of a device that compiled code may call.
class Symbols : public llvm::orc::DefinitionGenerator {
public:
  /// `device` may be null.
  explicit Symbols(const DeviceLibrary *device);

  /// Reports undefined functions that the module calls: the linker only reports
  /// names.
  LogicalResult check(ModuleOp module) const;

  llvm::Error tryToGenerate(llvm::orc::LookupState &state,
                            llvm::orc::LookupKind kind,
                            llvm::orc::JITDylib &library,
                            llvm::orc::JITDylibLookupFlags flags,
                            const llvm::orc::SymbolLookupSet &wanted) override;

private:
  /// The address of a function, or null.
  void *find(StringRef name) const;

  const DeviceLibrary *device;
  llvm::StringMap<void *> known;
};
} // namespace

Symbols::Symbols(const DeviceLibrary *device) : device(device) {
  static const bool isProcessSearched =
      !llvm::sys::DynamicLibrary::LoadLibraryPermanently(nullptr);
  (void)isProcessSearched;
  for (auto [name, function] : kFunctions)
    known[name] = reinterpret_cast<void *>(function);
  for (StringRef name : kConversions)
    known[name] = lookupHelper(name);
}

void *Symbols::find(StringRef name) const {
  if (void *address = known.lookup(name))
    return address;
  // Only what is ours: the library finds the C library's as well.
  if (device && name.starts_with("kvcache"))
    if (void *address = device->lookup(name))
      return address;
  if (void *address =
          llvm::sys::DynamicLibrary::SearchForAddressOfSymbol(name.str()))
    return address;
  return lookupHelper(name);
}

llvm::Error Symbols::tryToGenerate(llvm::orc::LookupState &,
                                   llvm::orc::LookupKind,
                                   llvm::orc::JITDylib &library,
                                   llvm::orc::JITDylibLookupFlags,
                                   const llvm::orc::SymbolLookupSet &wanted) {
  llvm::orc::SymbolMap found;
  for (const auto &[name, flags] : wanted)
    if (void *address = find(*name))
      found[name] = {llvm::orc::ExecutorAddr::fromPtr(address),
                     llvm::JITSymbolFlags::Exported |
                         llvm::JITSymbolFlags::Callable};
  if (found.empty())
    return llvm::Error::success();
  return library.define(llvm::orc::absoluteSymbols(std::move(found)));
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

LogicalResult Symbols::check(ModuleOp module) const {
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

/// Only the wrappers are looked up; the other functions may be inlined.
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
  llvm::Expected<HostProcessor> host = detectHostProcessor();
  if (!host)
    return host.takeError();
  llvm::orc::JITTargetMachineBuilder builder{
      llvm::Triple(llvm::sys::getProcessTriple())};
  builder.setCPU(host->name);
  for (const auto &[feature, isUsed] : host->features)
    builder.getFeatures().AddFeature(feature, isUsed);
  builder.setCodeGenOptLevel(optLevel);
  return builder.createTargetMachine();
}

/// A linker for objects of this process.
static llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> createLinker() {
  initializeNativeTarget();
  return llvm::orc::LLJITBuilder()
      .setLinkProcessSymbolsByDefault(false)
      .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
      .setObjectLinkingLayerCreator([](llvm::orc::ExecutionSession &session) {
        return std::make_unique<llvm::orc::RTDyldObjectLinkingLayer>(
            session, [](const llvm::MemoryBuffer &) {
              return std::make_unique<llvm::SectionMemoryManager>();
            });
      })
      .create();
}

JIT::~JIT() {
  for (const KVCacheKernel &kernel : kernels)
    device->unloadModule(kernel.binary);
  for (const auto &binary : binaries)
    if (binary.second)
      device->unloadModule(binary.second);
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
  Source source(contents, filename,
                options.isOfKernels ? SourceKind::Kernels : SourceKind::MLIR);
  CreateResult result;
  bool isRead =
      source.getModule() &&
      (!options.isOfKernels || succeeded(source.run([](OpPassManager &passes) {
        passes.addPass(createWrapKernels());
      })));
  if (isRead) {
    auto jit = std::make_unique<JIT>();
    if (options.isOfKernels)
      jit->describeKernels(source.getModule());
    else
      jit->describeFunctions(source.getModule());
    if (succeeded(source.run(options.passes)) &&
        succeeded(jit->compile(source, options)))
      result.jit = std::move(jit);
  }
  result.diagnostics = source.getDiagnostics().take();
  return result;
}

JIT::CreateResult JIT::load(std::string image, std::string device) {
  return runGuarded<CreateResult>(
      [image = std::move(image), device = std::move(device)] {
        return loadUnguarded(image, device);
      });
}

/// Makes the head of an image: whether there are kernels, and the description,
/// which ends with a zero.
static std::string makeImage(StringRef description, bool hasKernels,
                             StringRef object) {
  return (Twine(hasKernels ? '1' : '0') + description + Twine('\0') + object)
      .str();
}

JIT::CreateResult JIT::loadUnguarded(std::string image, StringRef device) {
  auto [described, object] = StringRef(image).split('\0');
  bool hasKernels = described.consume_front("1");
  described.consume_front("0");
  auto jit = std::make_unique<JIT>();
  jit->description = described.str();
  llvm::Error error = jit->openDevice(device);
  if (!error)
    error = jit->link(object, hasKernels);
  CreateResult result;
  if (!error) {
    result.jit = std::move(jit);
    return result;
  }
  DiagnosticRecord record;
  record.message = toString(std::move(error));
  result.diagnostics.push_back(std::move(record));
  return result;
}

void JIT::describeFunctions(ModuleOp module) {
  llvm::json::Array described;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && function.isPublic())
      described.push_back(describe(function));
  description = llvm::formatv("{0}", llvm::json::Value(std::move(described)));
}

void JIT::describeKernels(ModuleOp module) {
  llvm::json::Array described;
  for (auto kernels : module.getOps<gpu::GPUModuleOp>()) {
    binaries[kernels.getName()] = nullptr;
    for (auto function : kernels.getOps<LLVM::LLVMFuncOp>()) {
      if (!function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
        continue;
      llvm::json::Object kernel = describeKernel(function);
      kernel["module"] = llvm::json::fixUTF8(kernels.getName());
      described.push_back(std::move(kernel));
    }
  }
  description = llvm::formatv("{0}", llvm::json::Value(std::move(described)));
}

llvm::Error JIT::openDevice(StringRef name) {
  if (name.empty())
    return llvm::Error::success();
  auto loaded = DeviceLibrary::get(name);
  if (!loaded)
    return loaded.takeError();
  device = *loaded;
  return llvm::Error::success();
}

/// Rejects constructors and destructors of a module, which the JIT would not
/// run.
static LogicalResult checkConstructors(ModuleOp module) {
  for (Operation &op : *module.getBody()) {
    auto first = dyn_cast<LLVM::GlobalCtorsOp>(op);
    auto last = dyn_cast<LLVM::GlobalDtorsOp>(op);
    if ((first && !first.getCtors().empty()) ||
        (last && !last.getDtors().empty()))
      return op.emitError("constructors and destructors of a module are not "
                          "run");
  }
  return success();
}

LogicalResult JIT::compile(Source &source, const Options &options) {
  ModuleOp module = source.getModule();
  auto fail = [&](llvm::Error error) {
    source.getDiagnostics().addError(toString(std::move(error)));
    return failure();
  };
  if (llvm::Error error = openDevice(options.device))
    return fail(std::move(error));
  auto table = module.lookupSymbol<LLVM::GlobalOp>(kLaunchedKernels);
  bool hasKernels = device && table;
  if (hasKernels)
    table.setLinkage(LLVM::Linkage::External);
  for (const auto &binary : binaries)
    if (auto global = module.lookupSymbol<LLVM::GlobalOp>(binary.first()))
      global.setLinkage(LLVM::Linkage::External);
  if (failed(Symbols(device).check(module)) ||
      failed(checkConstructors(module)))
    return failure();
  hideFunctions(module);
  auto machine =
      createHostMachine(llvm::CodeGenOpt::getLevel(options.optLevel)
                            .value_or(llvm::CodeGenOptLevel::Default));
  if (!machine)
    return fail(machine.takeError());
  auto object =
      createObject(module, **machine, options.optLevel, [](llvm::Module &) {});
  if (!object)
    return fail(object.takeError());
  if (llvm::Error error = link(*object, hasKernels))
    return fail(std::move(error));
  if (options.keepsImage)
    image = makeImage(description, hasKernels, *object);
  return success();
}

llvm::Error JIT::link(StringRef object, bool hasKernels) {
  auto created = createLinker();
  if (!created)
    return created.takeError();
  linker = std::move(*created);
  linker->getMainJITDylib().addGenerator(std::make_unique<Symbols>(device));
  // A lookup that fails returns its name, and reports the reason.
  std::string reasons;
  llvm::orc::ExecutionSession &session = linker->getExecutionSession();
  session.setErrorReporter([&](llvm::Error reason) {
    reasons += toString(std::move(reason)) + "; ";
  });
  llvm::Error error = linkReporting(object, hasKernels);
  session.setErrorReporter(llvm::consumeError);
  if (!error || reasons.empty())
    return error;
  return llvm::createStringError(reasons + toString(std::move(error)));
}

llvm::Error JIT::linkReporting(StringRef object, bool hasKernels) {
  // The linker requires alignment.
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "kvcache");
  if (llvm::Error error = linker->addObjectFile(std::move(buffer)))
    return error;
  if (llvm::Error error =
          binaries.empty() ? lookupWrappers() : lookupBinaries())
    return error;
  if (!hasKernels)
    return llvm::Error::success();
  auto found = linker->lookup(kLaunchedKernels);
  if (!found)
    return found.takeError();
  const auto &table = *found->toPtr<const KVCacheKernels *>();
  kernels = llvm::ArrayRef(table.kernels, table.numKernels);
  return llvm::Error::success();
}

llvm::Error JIT::lookupWrappers() {
  auto described = llvm::json::parse(description);
  if (!described)
    return described.takeError();
  for (const llvm::json::Value &function : *described->getAsArray()) {
    StringRef name = *function.getAsObject()->getString("name");
    auto found = linker->lookup((kTVMFFIPrefix + name).str());
    if (!found)
      return found.takeError();
    wrappers[name] = found->toPtr<void *>();
  }
  return llvm::Error::success();
}

llvm::Error JIT::lookupBinaries() {
  for (auto &binary : binaries) {
    auto found = linker->lookup(binary.first());
    if (!found)
      return found.takeError();
    binary.second = found->toPtr<const KVCacheBinary *>();
  }
  return llvm::Error::success();
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
