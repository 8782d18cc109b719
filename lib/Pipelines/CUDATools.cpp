//===- CUDATools.cpp - ptxas and fatbinary --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CUDATools.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace mlir;

//===----------------------------------------------------------------------===//
// Finding tools
//===----------------------------------------------------------------------===//

static std::string getPathInBin(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, "bin", name);
  return path.str().str();
}

FailureOr<std::string> kvcache::findCUDATool(Location loc, StringRef name,
                                             StringRef toolkit) {
  if (!toolkit.empty()) {
    std::string path = getPathInBin(toolkit, name);
    if (llvm::sys::fs::can_execute(path))
      return path;
    return emitError(loc, "expects the toolkit to have '") << path << "'";
  }
  if (llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(name))
    return *path;
  for (const char *variable : {"CUDA_HOME", "CUDA_ROOT", "CUDA_PATH"})
    if (auto folder = llvm::sys::Process::GetEnv(variable))
      if (std::string path = getPathInBin(*folder, name);
          llvm::sys::fs::can_execute(path))
        return path;
  return emitError(loc, "'")
         << name
         << "' is not on PATH: pass the pipeline option 'toolkit', set "
            "CUDA_HOME, or install the Python package nvidia-cuda-nvcc";
}

//===----------------------------------------------------------------------===//
// Running tools
//===----------------------------------------------------------------------===//

namespace {

/// Files that live as long as this object.
class TemporaryFiles {
public:
  explicit TemporaryFiles(Location loc) : loc(loc) {}
  ~TemporaryFiles() {
    for (const std::string &path : paths)
      llvm::sys::fs::remove(path);
  }

  /// The path of a new file with this content.
  FailureOr<std::string> create(StringRef suffix, StringRef content = "") {
    SmallString<128> path;
    int descriptor;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile(
            "kvcache", suffix, descriptor, path))
      return emitError(loc, "can't make a temporary file: ") << error.message();
    paths.push_back(path.str().str());
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
    os << content;
    return paths.back();
  }

  FailureOr<std::string> read(StringRef path) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      return emitError(loc, "can't read '")
             << path << "': " << buffer.getError().message();
    return (*buffer)->getBuffer().str();
  }

  /// Runs a command; what it prints becomes the error if it fails.
  LogicalResult run(ArrayRef<StringRef> command) {
    FailureOr<std::string> log = create("log");
    if (failed(log))
      return failure();
    std::optional<StringRef> redirects[] = {"", StringRef(*log),
                                            StringRef(*log)};
    std::string message;
    int status = llvm::sys::ExecuteAndWait(
        command.front(), command, std::nullopt, redirects, /*SecondsToWait=*/0,
        /*MemoryLimit=*/0, &message);
    if (status == 0)
      return success();
    FailureOr<std::string> output = read(*log);
    return emitError(loc, "'")
           << llvm::sys::path::filename(command.front()) << "' failed: "
           << (message.empty() && succeeded(output) ? StringRef(*output).trim()
                                                    : StringRef(message));
  }

private:
  Location loc;
  SmallVector<std::string> paths;
};

} // namespace

FailureOr<std::string> kvcache::assemblePTX(Location loc, StringRef ptxas,
                                            StringRef ptx, StringRef chip,
                                            int optLevel) {
  TemporaryFiles files(loc);
  FailureOr<std::string> input = files.create("ptx", ptx);
  FailureOr<std::string> output = files.create("cubin");
  std::string level = "-O" + std::to_string(optLevel);
  if (failed(input) || failed(output) ||
      failed(files.run({ptxas, "-arch", chip, level, *input, "-o", *output})))
    return failure();
  return files.read(*output);
}

FailureOr<std::string> kvcache::makeFatBinary(Location loc, StringRef fatbinary,
                                              StringRef ptx, StringRef cubin,
                                              StringRef chip) {
  TemporaryFiles files(loc);
  FailureOr<std::string> ptxFile = files.create("ptx", ptx);
  FailureOr<std::string> cubinFile = files.create("cubin", cubin);
  FailureOr<std::string> output = files.create("fatbin");
  if (failed(ptxFile) || failed(cubinFile) || failed(output))
    return failure();
  StringRef number = chip;
  number.consume_front("sm_");
  std::string ptxImage =
      ("--image3=kind=ptx,sm=" + number + ",file=" + *ptxFile).str();
  std::string cubinImage =
      ("--image3=kind=elf,sm=" + number + ",file=" + *cubinFile).str();
  std::string create = "--create=" + *output;
  if (failed(files.run({fatbinary, "-64", create, ptxImage, cubinImage})))
    return failure();
  return files.read(*output);
}
