//===- JIT.h - Modules to functions of this process -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_JIT_H
#define KVCACHE_PYTHON_JIT_H

#include "DeviceLibrary.h"
#include "kvcache/Compile/Source.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

namespace mlir::kvcache::python {

/// Makes LLVM's code generator of this machine known.
void initializeNativeTarget();

/// The compiled public functions of a module.
class JIT {
public:
  ~JIT();

  /// How a module is compiled.
  struct Options {
    /// They must leave the LLVM dialect and a TVM-FFI wrapper for every public
    /// function.
    std::string passes;
    /// 0 to 3, for LLVM.
    unsigned optLevel = 2;
    /// The device whose functions the module calls, `emulator` or `cuda`;
    /// empty for none.
    std::string device;
    /// Whether the image is kept.
    bool keepsImage = false;
    /// Whether the source is of kernels alone, which others launch, and may be
    /// LLVM IR.
    bool isOfKernels = false;
  };

  /// The functions of a module or an image, or null on errors.
  struct CreateResult {
    std::unique_ptr<JIT> jit;
    std::vector<DiagnosticRecord> diagnostics;
  };

  static CreateResult create(std::string source, std::string filename,
                             Options options);

  /// Makes the functions of an image without compiling anything. It must be
  /// one of this library, of the same device, and of this kind of processor.
  static CreateResult load(std::string image, std::string device);

  /// The image for `load`; empty unless it was to be kept.
  StringRef getImage() const { return image; }

  /// The functions, described as a JSON array.
  StringRef getDescription() const { return description; }

  /// The address of a function's TVM-FFI wrapper; null if there is none.
  void *lookup(StringRef name) const { return wrappers.lookup(name); }

  /// The kernels that the functions launch.
  llvm::ArrayRef<KVCacheKernel> getKernels() const { return kernels; }

  /// The binaries of a source of kernels, by the names of their modules.
  const llvm::StringMap<const KVCacheBinary *> &getBinaries() const {
    return binaries;
  }

  /// Loads the kernels into a context of a device; of the current one if
  /// `device` is negative. Returns a message on failure.
  std::string load(int32_t device) const;

  /// Gives the memory traffic of this thread's launches since the last call, as
  /// JSON. Empty for modules that don't run on the emulator.
  std::string takeMeter() const;

private:
  static CreateResult createUnguarded(StringRef contents, StringRef filename,
                                      const Options &options);
  static CreateResult loadUnguarded(std::string image, StringRef device);
  void describeFunctions(ModuleOp module);
  void describeKernels(ModuleOp module);
  llvm::Error openDevice(StringRef name);
  LogicalResult compile(Source &source, const Options &options);
  /// Links an object, looks up its wrappers, and the kernels if it has any.
  llvm::Error link(StringRef object, bool hasKernels);
  llvm::Error linkReporting(StringRef object, bool hasKernels);
  llvm::Error lookupWrappers();
  llvm::Error lookupBinaries();

  /// Null for modules that run on the CPU.
  const DeviceLibrary *device = nullptr;
  std::unique_ptr<llvm::orc::LLJIT> linker;
  /// Constants of the compiled code.
  llvm::ArrayRef<KVCacheKernel> kernels;
  llvm::StringMap<void *> wrappers;
  llvm::StringMap<const KVCacheBinary *> binaries;
  std::string description;
  std::string image;
};

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_JIT_H
