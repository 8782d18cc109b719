//===- CUDATools.cpp - ptxas and fatbinary --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CUDATools.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

#include <chrono>
#include <csignal>
#include <thread>

using namespace mlir;

//===----------------------------------------------------------------------===//
// Finding tools
//===----------------------------------------------------------------------===//

/// The toolkits that environment variables name.
static SmallVector<std::string> listHomes() {
  SmallVector<std::string> homes;
  for (const char *variable : {"CUDA_HOME", "CUDA_ROOT", "CUDA_PATH"})
    if (auto folder = llvm::sys::Process::GetEnv(variable);
        folder && !folder->empty())
      homes.push_back(*folder);
  return homes;
}

static std::string getPathInBin(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, "bin", name);
  return path.str().str();
}

/// As `find_tool` of python/kvcache/compilation/toolchain.py, which also looks
/// into NVIDIA's packages for Python.
FailureOr<std::string> kvcache::findCUDATool(Location loc, StringRef name,
                                             StringRef toolkit) {
  using llvm::sys::Process;
  if (!toolkit.empty()) {
    std::string path = getPathInBin(toolkit, name);
    if (llvm::sys::fs::can_execute(path))
      return path;
    return emitError(loc, "expects the toolkit to have '") << path << "'";
  }
  std::string variable = name.upper();
  if (auto path = Process::GetEnv(variable); path && !path->empty()) {
    if (llvm::sys::fs::can_execute(*path))
      return *path;
    return emitError(loc) << variable << " is '" << *path
                          << "', which is not a program";
  }
  for (StringRef home : listHomes())
    if (std::string path = getPathInBin(home, name);
        llvm::sys::fs::can_execute(path))
      return path;
  if (llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(name))
    return *path;
  return emitError(loc, "'")
         << name << "' was not found: pass the pipeline option 'toolkit', set "
         << variable
         << " to its path or CUDA_HOME to a CUDA toolkit, or put it on PATH";
}

/// The folders that may be a toolkit, as `findCUDATool` looks for tools.
static SmallVector<std::string> listToolkits() {
  using llvm::sys::Process;
  SmallVector<std::string> toolkits;
  auto addRootOf = [&](StringRef tool) {
    SmallString<128> path;
    if (!llvm::sys::fs::real_path(tool, path))
      toolkits.push_back(
          llvm::sys::path::parent_path(llvm::sys::path::parent_path(path))
              .str());
  };
  if (auto ptxas = Process::GetEnv("PTXAS"); ptxas && !ptxas->empty())
    addRootOf(*ptxas);
  llvm::append_range(toolkits, listHomes());
  if (llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName("ptxas"))
    addRootOf(*path);
  return toolkits;
}

std::optional<std::string> kvcache::findLibdevice(StringRef toolkit) {
  SmallVector<std::string> toolkits =
      toolkit.empty() ? listToolkits()
                      : SmallVector<std::string>{toolkit.str()};
  for (StringRef folder : toolkits) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, "nvvm", "libdevice", "libdevice.10.bc");
    if (llvm::sys::fs::exists(path))
      return path.str().str();
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Running tools
//===----------------------------------------------------------------------===//

/// The environment variable with the seconds that a tool may take.
static constexpr const char *kTimeLimit = "KVCACHE_TOOL_TIMEOUT";

static FailureOr<unsigned> getTimeLimit(Location loc) {
  unsigned seconds = 600;
  std::optional<std::string> value = llvm::sys::Process::GetEnv(kTimeLimit);
  if (value && (StringRef(*value).getAsInteger(10, seconds) || seconds == 0))
    return emitError(loc, "expects ")
           << kTimeLimit << " to be a positive number of seconds, got '"
           << *value << "'";
  return seconds;
}

/// Runs a command with its output in `log`. Returns its exit code, or nothing
/// if it had to be killed; `message` says why it could not run or crashed.
/// `ExecuteAndWait` would set the alarm of the process, which belongs to the
/// program that we are a library of.
static std::optional<int> runFor(unsigned seconds, ArrayRef<StringRef> command,
                                 StringRef log, std::string &message) {
  using Clock = std::chrono::steady_clock;
  std::optional<StringRef> redirects[] = {"", log, log};
  bool couldNotRun = false;
  llvm::sys::ProcessInfo child = llvm::sys::ExecuteNoWait(
      command.front(), command, std::nullopt, redirects, /*MemoryLimit=*/0,
      &message, &couldNotRun);
  if (couldNotRun)
    return -1;
  Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  std::chrono::milliseconds pause(1);
  while (Clock::now() < end) {
    llvm::sys::ProcessInfo ended =
        llvm::sys::Wait(child, /*SecondsToWait=*/0, &message);
    if (ended.Pid == child.Pid)
      return ended.ReturnCode;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(20));
  }
  ::kill(child.Pid, SIGKILL);
  llvm::sys::Wait(child, /*SecondsToWait=*/std::nullopt);
  return std::nullopt;
}

/// Reads the output of a tool; diagnostics are UTF-8.
static std::string readText(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  StringRef text = buffer ? (*buffer)->getBuffer().trim() : "";
  return text.empty() ? "it printed nothing" : llvm::json::fixUTF8(text);
}

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

  /// Runs a command that writes the file `output`, and returns its content.
  /// What the command prints becomes the error if it fails.
  FailureOr<std::string> run(ArrayRef<StringRef> command, StringRef output) {
    FailureOr<std::string> log = create("log");
    FailureOr<unsigned> limit = getTimeLimit(loc);
    if (failed(log) || failed(limit))
      return failure();
    StringRef tool = llvm::sys::path::filename(command.front());
    std::string message;
    std::optional<int> status = runFor(*limit, command, *log, message);
    if (!status)
      return emitError(loc, "'") << tool << "' did not end within " << *limit
                                 << " s, the limit of " << kTimeLimit;
    if (*status != 0)
      return emitError(loc, "'")
             << tool << "' failed ("
             << (message.empty() ? "exit code " + std::to_string(*status)
                                 : message)
             << "): " << readText(*log);
    auto content = llvm::MemoryBuffer::getFile(output);
    if (content && (*content)->getBufferSize() > 0)
      return (*content)->getBuffer().str();
    return emitError(loc, "'") << tool << "' succeeded, but wrote no output";
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
  if (failed(input) || failed(output))
    return failure();
  return files.run({ptxas, "-arch", chip, level, *input, "-o", *output},
                   *output);
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
  return files.run({fatbinary, "-64", create, ptxImage, cubinImage}, *output);
}
