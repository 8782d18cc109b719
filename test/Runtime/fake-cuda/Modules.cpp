//===- Modules.cpp - Modules, kernels and launches ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCUDA.h"

#include "kvcache/Emulator/ABI.h"
#include "kvcache/Runtime/Device.h"

#include <map>
#include <memory>
#include <optional>
#include <regex>

using namespace fake;

namespace {
struct Module {
  /// The image without the magic number of its kind.
  std::string text;
  void *context;
  /// Its variables that have been looked up, and their memory.
  std::map<std::string, Address> variables;
};

struct Function {
  std::string name;
  Module *module;
  std::vector<size_t> paramBytes;
  int sharedLimit = 48 * 1024 - 1024;
};

/// A parameter of a launch; descriptors require this alignment.
struct Param {
  alignas(64) char bytes[128];
};
} // namespace

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// The images of the tests are text, after the magic number of their kind.
static std::string readImage(const void *image) {
  const char *text = static_cast<const char *>(image);
  if (!std::memcmp(text, "\177ELF", 4))
    return std::string("cubin ") + (text + 4);
  const unsigned char fatBinary[] = {0x50, 0xed, 0x55, 0xba};
  if (!std::memcmp(text, fatBinary, 4))
    return std::string("fat binary ") + (text + 4);
  return std::string("PTX ") + text;
}

/// The first line of an image that is not PTX of a compiler.
static const char *describe(const Module &module) {
  return module.text.find(".entry") == std::string::npos ? module.text.c_str()
                                                         : "PTX";
}

static Result load(const char *function, void **module, const void *image) {
  Lock lock(mutex);
  if (Result result = forbid(function, "loads code"))
    return result;
  auto *loaded = new Module{readImage(image), getCurrentContext(), {}};
  *module = loaded;
  return print(function, "%s, %s context", describe(*loaded),
               getContextName(loaded->context));
}

EXPORT Result cuModuleLoadDataEx(void **module, const void *image,
                                 unsigned numOptions, int *options,
                                 void **values) {
  Result result = load("cuModuleLoadDataEx", module, image);
  // CU_JIT_ERROR_LOG_BUFFER and its size.
  if (result && numOptions == 2 && options[0] == 5 && options[1] == 6)
    std::snprintf(static_cast<char *>(values[0]),
                  reinterpret_cast<uintptr_t>(values[1]), "%s",
                  "ptxas fatal : no such thing");
  return result;
}

EXPORT Result cuModuleLoadData(void **module, const void *image) {
  return load("cuModuleLoadData", module, image);
}

EXPORT Result cuLibraryLoadData(void **library, const void *image, int *,
                                void **, unsigned, int *, void **, unsigned) {
  return load("cuLibraryLoadData", library, image);
}

EXPORT Result cuModuleUnload(void *module) {
  Lock lock(mutex);
  Result result = print("cuModuleUnload", "%s, %s context",
                        describe(*static_cast<Module *>(module)),
                        getContextName(getCurrentContext()));
  // Work that is left uses the names of its kernels.
  drainAll();
  delete static_cast<Module *>(module);
  return result;
}

/// All variables that are asked for have 8 bytes.
EXPORT Result cuModuleGetGlobal_v2(Address *address, size_t *bytes,
                                   void *handle, const char *name) {
  Lock lock(mutex);
  auto &module = *static_cast<Module *>(handle);
  std::regex declaration(R"(\.global [^;\n]*\b)" + std::string(name) + R"(\b)");
  if (!std::regex_search(module.text, declaration))
    return kNotFound;
  if (Result result = print("cuModuleGetGlobal", "%s", name))
    return result;
  Address &known = module.variables[name];
  Result result = known ? kSuccess : allocate(&known, *bytes = 8);
  *address = known;
  return result;
}

EXPORT Result cuLibraryUnload(void *library) { return cuModuleUnload(library); }

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The sizes of the parameters of a kernel in PTX; nothing without the kernel.
static std::optional<std::vector<size_t>> readParams(const std::string &text,
                                                     const std::string &name) {
  size_t entry = text.find(".entry " + name + "(");
  if (entry == std::string::npos)
    return std::nullopt;
  size_t end = text.find("\n)", entry);
  std::string params = text.substr(entry, end - entry);
  static const std::regex pattern(
      R"(\.param\s+(?:\.align\s+\d+\s+)?\.([a-z])(\d+)[^,\n]*?(?:\[(\d+)\])?,?\n|\.param\s+(?:\.align\s+\d+\s+)?\.([a-z])(\d+)[^,\n]*?(?:\[(\d+)\])?$)");
  std::vector<size_t> sizes;
  for (std::sregex_iterator it(params.begin(), params.end(), pattern), none;
       it != none; ++it) {
    int first = (*it)[1].matched ? 1 : 4;
    size_t bytes = std::stoul((*it)[first + 1]) / 8;
    if ((*it)[first + 2].matched)
      bytes *= std::stoul((*it)[first + 2]);
    sizes.push_back(bytes);
  }
  return sizes;
}

static std::vector<size_t> readSizes(const std::string &text) {
  std::vector<size_t> sizes;
  for (const char *at = text.c_str(); *at;) {
    char *end;
    sizes.push_back(std::strtoul(at, &end, 10));
    at = *end == ',' ? end + 1 : end;
  }
  return sizes;
}

EXPORT Result cuModuleGetFunction(void **function, void *module,
                                  const char *name) {
  Lock lock(mutex);
  if (Result result = forbid("cuModuleGetFunction", "loads code"))
    return result;
  auto *owner = static_cast<Module *>(module);
  bool isCompiled = owner->text.find(".entry") != std::string::npos;
  auto sizes = isCompiled ? readParams(owner->text, name)
                          : readSizes(getOption("FAKE_CUDA_PARAMS", "8,4,128"));
  if (!sizes)
    return kNotFound;
  *function = new Function{name, owner, *sizes};
  return print("cuModuleGetFunction", "%s, %s", describe(*owner), name);
}

EXPORT Result cuLibraryGetKernel(void **kernel, void *library,
                                 const char *name) {
  return cuModuleGetFunction(kernel, library, name);
}

EXPORT Result cuKernelGetFunction(void **function, void *kernel) {
  *function = kernel;
  return kSuccess;
}

EXPORT Result cuFuncGetAttribute(int *value, int attribute, void *function) {
  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  *value =
      attribute == 8 ? static_cast<Function *>(function)->sharedLimit : 1024;
  return kSuccess;
}

EXPORT Result cuKernelGetAttribute(int *value, int attribute, void *kernel,
                                   int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}

EXPORT Result cuFuncSetAttribute(void *function, int attribute, int value) {
  static_cast<Function *>(function)->sharedLimit = value;
  return print("cuFuncSetAttribute", "%s, %d, %d",
               static_cast<Function *>(function)->name.c_str(), attribute,
               value);
}

EXPORT Result fakeNew_cuFuncGetParamInfo(void *function, size_t index,
                                         size_t *offset, size_t *size) {
  const auto &sizes = static_cast<Function *>(function)->paramBytes;
  if (index >= sizes.size())
    return kInvalidValue;
  *offset = 0;
  *size = sizes[index];
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static std::map<std::string, const KVCacheBinary *> &getEmulatedKernels() {
  static auto &kernels = *new std::map<std::string, const KVCacheBinary *>;
  return kernels;
}

/// Lets the emulator run the kernels of this name: `binary` is the
/// KVCacheBinary of their module, compiled for the emulator.
EXPORT void fakeCudaAddKernel(const char *name, const KVCacheBinary *binary) {
  Lock lock(mutex);
  getEmulatedKernels()[name] = binary;
}

static bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() &&
         !text.compare(text.size() - end.size(), end.size(), end);
}

/// Lets the variables of an emulated module have the values of `module`, and
/// those that have not been looked up their values in a new one.
static void setVariables(const Module &module, const KVCacheBinary &binary) {
  auto &code =
      *static_cast<const KVCacheEmulatedModule *>(binary.images[0].data);
  for (int64_t i = 0; i < code.numGlobals; ++i) {
    const KVCacheEmulatedGlobal &global = code.globals[i];
    std::string name = global.name;
    for (const auto &[ours, address] : module.variables)
      if (endsWith(name, "_" + ours))
        std::memcpy(global.address, reinterpret_cast<void *>(address), 8);
    if (endsWith(name, "_kvcache_failure_claimed"))
      std::memset(global.address, 0, 4);
  }
}

/// Runs a kernel on the emulator, with the values of its parameters.
static void run(const Function &kernel, const Launch &launch,
                std::vector<Param> params) {
  const Emulator *emulator = getEmulator();
  if (!emulator)
    return;
  auto found = getEmulatedKernels().find(kernel.name);
  void *module = nullptr;
  if (found == getEmulatedKernels().end() ||
      emulator->load(found->second, &module))
    return setKernelError(kNotFound, "no emulated kernel " + kernel.name);
  setVariables(*kernel.module, *found->second);
  std::vector<void *> values;
  for (Param &param : params)
    values.push_back(param.bytes);
  std::vector<int64_t> sizes(kernel.paramBytes.begin(),
                             kernel.paramBytes.end());
  // The launch may have stopped where later ones may begin.
  if (!emulator->launch(module, kernel.name.c_str(), &launch, values.data(),
                        sizes.data(), static_cast<int64_t>(sizes.size())) &&
      !emulator->synchronize(launch.stream))
    return;
  std::string message = emulator->getLastError();
  bool isAssertion = message.find("fails an assertion") != std::string::npos;
  setKernelError(isAssertion ? kAssert : kLaunchFailed, message);
}

static bool isIdle = false;

/// Whether launches from now on are neither recorded nor done, so that what
/// they take is the caller's time.
EXPORT void fakeCudaSetIdle(bool idle) {
  Lock lock(mutex);
  isIdle = idle;
}

static std::string describeValues(const Function &kernel, void **params) {
  std::string values;
  for (size_t index = 0; index < kernel.paramBytes.size(); ++index) {
    size_t size = kernel.paramBytes[index];
    uint64_t value = 0;
    std::memcpy(&value, params[index], size < 8 ? size : 8);
    values += ", " + std::to_string(value) + ":" + std::to_string(size);
  }
  return values;
}

static std::string describe(const int64_t (&sides)[3]) {
  return format("%lldx%lldx%lld", static_cast<long long>(sides[0]),
                static_cast<long long>(sides[1]),
                static_cast<long long>(sides[2]));
}

static Result launch(const char *function, void *handle, const Launch &launch,
                     void **params, void **extra) {
  Lock lock(mutex);
  if (isIdle)
    return kSuccess;
  const auto &kernel = *static_cast<Function *>(handle);
  if (Result result = checkStream(function, launch.stream))
    return result;
  if (kernel.module->context != getCurrentContext())
    return kInvalidHandle;
  if (launch.sharedBytes > kernel.sharedLimit || extra)
    return kInvalidValue;
  std::vector<Param> copies(kernel.paramBytes.size());
  for (size_t index = 0; index < copies.size(); ++index)
    std::memcpy(copies[index].bytes, params[index], kernel.paramBytes[index]);
  std::string attributes;
  if (launch.cluster[0])
    attributes += ", cluster " + describe(launch.cluster);
  if (launch.isProgrammatic)
    attributes += ", programmatic";
  if (Result result =
          print(function, "%s, %s, %s, %lld, %s%s%s", kernel.name.c_str(),
                describe(launch.grid).c_str(), describe(launch.block).c_str(),
                static_cast<long long>(launch.sharedBytes),
                getStreamName(launch.stream),
                describeValues(kernel, params).c_str(), attributes.c_str()))
    return result;
  return enqueue(launch.stream,
                 [kernel, launch, copies] { run(kernel, launch, copies); });
}

EXPORT Result cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                             unsigned gridZ, unsigned blockX, unsigned blockY,
                             unsigned blockZ, unsigned sharedBytes,
                             void *stream, void **params, void **extra) {
  return launch("cuLaunchKernel", function,
                {{gridX, gridY, gridZ},
                 {blockX, blockY, blockZ},
                 sharedBytes,
                 stream,
                 {0, 0, 0},
                 0},
                params, extra);
}

namespace {
/// CUlaunchAttribute and CUlaunchConfig of cuda.h.
struct Attribute {
  int id;
  char padding[4];
  union {
    unsigned cluster[3];
    int flag;
    char bytes[64];
  } value;
};
struct Config {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void *stream;
  Attribute *attributes;
  unsigned numAttributes;
};
static_assert(sizeof(Attribute) == 72 && sizeof(Config) == 56);
} // namespace

EXPORT Result fakeNew_cuLaunchKernelEx(const Config *config, void *function,
                                       void **params, void **extra) {
  Launch wanted = {{config->gridX, config->gridY, config->gridZ},
                   {config->blockX, config->blockY, config->blockZ},
                   config->sharedBytes,
                   config->stream,
                   {0, 0, 0},
                   0};
  for (unsigned i = 0; i < config->numAttributes; ++i) {
    const Attribute &attribute = config->attributes[i];
    if (attribute.id == 4) // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
      for (int side = 0; side < 3; ++side)
        wanted.cluster[side] = attribute.value.cluster[side];
    else if (attribute.id == 6) // …_PROGRAMMATIC_STREAM_SERIALIZATION
      wanted.isProgrammatic = attribute.value.flag;
    else
      return kInvalidValue;
  }
  return launch("cuLaunchKernelEx", function, wanted, params, extra);
}
