//===- Findings.cpp - What ends a child -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Findings.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/DebugInfo/Symbolize/Symbolize.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir::kvcache::fuzz;
using llvm::StringRef;

Progress &Progress::share() {
  void *memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    llvm::report_fatal_error("no memory to share");
  return *new (memory) Progress();
}

void Progress::copy(char *to, size_t size, StringRef from) {
  size_t length = std::min(size - 1, from.size());
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}

static Progress *current = nullptr;

/// Writes down where the signal came from: the names of functions, innermost
/// first. Nothing here is safe in a handler, but there is nothing to lose.
static void handleSignal(int number) {
  signal(number, SIG_DFL);
  // What the names take must not hang.
  alarm(2);
  void *frames[48];
  int depth = backtrace(frames, 48);
  std::string names;
  for (int i = 1; i < depth; ++i) {
    Dl_info info;
    if (!dladdr(frames[i], &info))
      continue;
    if (!info.dli_sname) {
      uintptr_t offset = reinterpret_cast<uintptr_t>(frames[i]) -
                         reinterpret_cast<uintptr_t>(info.dli_fbase);
      names += llvm::formatv(
          "{0}+{1:x}\n", StringRef(info.dli_fname).rsplit('/').second, offset);
      continue;
    }
    char *name = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr);
    names +=
        StringRef(name ? name : info.dli_sname).take_front(160).str() + "\n";
  }
  Progress::copy(current->note, Progress::kNoteBytes, names);
  raise(number);
}

static void handleFatalError(void *, const char *reason, bool) {
  Progress::copy(current->note, Progress::kNoteBytes, reason);
  _exit(FatalError);
}

static constexpr int kSignals[] = {SIGSEGV, SIGABRT, SIGBUS,
                                   SIGILL,  SIGFPE,  SIGTRAP};

void mlir::kvcache::fuzz::installHandlers(Progress &progress) {
  current = &progress;
  llvm::install_fatal_error_handler(handleFatalError);
  // A stack that is full is of no use to a handler.
  static char stack[1 << 18];
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof(stack);
  sigaltstack(&other, nullptr);
  for (int number : kSignals) {
    struct sigaction action{};
    action.sa_handler = handleSignal;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(number, &action, nullptr);
  }
}

void mlir::kvcache::fuzz::dropHandlers() {
  llvm::remove_fatal_error_handler();
  for (int number : kSignals)
    signal(number, SIG_DFL);
}

std::string mlir::kvcache::fuzz::describeExit(int code,
                                              const Progress &progress) {
  switch (code) {
  case FatalError:
    return std::string("fatal error of LLVM: ") + progress.note;
  case Silent:
    return "fails without an error";
  case Invalid:
    return std::string("invalid after ") + progress.note;
  default:
    return "exits with " + std::to_string(code);
  }
}

/// The frames of a signal with the names of this program's functions, which
/// only its symbol table has. The first lines are those of the handler.
static std::string nameFrames(StringRef note) {
  static llvm::symbolize::LLVMSymbolizer symbolizer;
  static const std::string self = llvm::sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&nameFrames));
  llvm::SmallVector<StringRef> frames;
  note.split(frames, '\n', -1, /*KeepEmpty=*/false);
  std::string named;
  for (StringRef frame : frames) {
    auto [file, offset] = frame.split("+0x");
    uint64_t address;
    if (!offset.empty() && file.starts_with("libc.so"))
      continue;
    if (StringRef(self).ends_with(file) && !offset.getAsInteger(16, address)) {
      auto info = symbolizer.symbolizeCode(
          self, {address, llvm::object::SectionedAddress::UndefSection});
      if (info && info->FunctionName != "<invalid>") {
        named += info->FunctionName.substr(0, 160) + "\n";
        continue;
      }
      llvm::consumeError(info.takeError());
    }
    named += frame.str() + "\n";
  }
  return named;
}

/// Findings of a kind have one cause, as far as is visible: the reason
/// without numbers, and the innermost functions.
static std::string getKind(StringRef reason, StringRef note, StringRef stage) {
  std::string kind = reason.split('\n').first.take_front(100).str();
  kind.erase(llvm::remove_if(kind, llvm::isDigit), kind.end());
  if (!reason.starts_with("signal"))
    return kind + " " + stage.str();
  llvm::SmallVector<StringRef> frames;
  note.split(frames, '\n');
  return kind + "\n" + llvm::join(llvm::ArrayRef(frames).take_front(3), "\n");
}

/// Whether a finding is MLIR's own: a signal of a pass that is not run by a
/// pipeline of ours, or of what prints. No function of ours is on the stack but
/// those that run mutants. MLIR's reader of bytecode
/// trusts what it reads; there, only a signal in a function of ours is a
/// finding.
static bool isUpstream(StringRef reason, StringRef note,
                       const Progress &progress) {
  bool reads = StringRef(progress.stage) == "reading";
  size_t runner = note.find("mlir::kvcache::fuzz::Runner");
  if (!reason.starts_with("signal") || runner == StringRef::npos)
    return reads;
  return !note.take_front(runner).contains("kvcache") &&
         StringRef(progress.stage) != "parsing" &&
         StringRef(progress.stage) != kSyntax &&
         (StringRef(progress.stage) != "passes" ||
          !StringRef(progress.passes).contains("kvcache-to"));
}

void Findings::add(StringRef reason, const Progress &progress) {
  if (StringRef(progress.stage) == "mutation")
    return; // The mutator's own affair.
  std::string note = progress.note;
  if (reason.starts_with("signal"))
    note = nameFrames(note);
  std::string said =
      (reason + " (" + progress.passes + ")\n" + progress.stage + "\n" + note)
          .str();
  if (isUpstream(reason, note, progress) ||
      llvm::any_of(known, [&](StringRef part) {
        return StringRef(said).contains(part);
      })) {
    ++numKnown;
    return;
  }
  unsigned &number = kinds[getKind(reason, note, progress.stage)];
  if (number++ >= 2)
    return;
  llvm::sys::fs::create_directories(folder);
  std::string name = llvm::formatv("{0}/{1}-{2}.mlir", folder, seed,
                                   uint64_t(progress.number));
  std::error_code error;
  llvm::raw_fd_ostream file(name, error);
  llvm::SmallVector<StringRef> notes;
  StringRef(note).split(notes, '\n', 20, /*KeepEmpty=*/false);
  file << "// " << reason.split('\n').first << "\n// stage: " << progress.stage
       << "\n// passes: " << progress.passes << "\n";
  for (StringRef line : llvm::ArrayRef(notes).take_front(20))
    file << "// " << line << "\n";
  file << progress.text << "\n";
  llvm::errs() << name << ": " << reason << " (" << progress.stage << ", "
               << progress.passes << ")\n";
}
