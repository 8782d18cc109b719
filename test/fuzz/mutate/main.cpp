//===- main.cpp - Mutants through parser, verifier and passes -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mutant number i of a seed is the same in every run. A child runs one after
// the other; what ends it is a finding, and another child continues after it.
//
//===----------------------------------------------------------------------===//

#include "Findings.h"
#include "OpMutator.h"
#include "Run.h"
#include "TextMutator.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace mlir::kvcache::fuzz;
namespace cl = llvm::cl;
using Clock = std::chrono::steady_clock;

static cl::list<std::string> files(cl::Positional, cl::OneOrMore,
                                   cl::desc("<files of MLIR>"));
static cl::opt<uint64_t> seed("seed", cl::init(0), cl::desc("Of all mutants"));
static cl::opt<uint64_t> first("first", cl::init(0),
                               cl::desc("The number of the first mutant"));
static cl::opt<uint64_t> count("count", cl::init(UINT64_MAX),
                               cl::desc("How many mutants, at most"));
static cl::opt<double> seconds("seconds", cl::init(1e9),
                               cl::desc("How long, at most"));
static cl::opt<double> patience("patience", cl::init(10),
                                cl::desc("Seconds that one mutant may take"));
// A limit leaves AddressSanitizer no room.
static cl::opt<uint64_t>
    megabytes("megabytes", cl::init(LLVM_ADDRESS_SANITIZER_BUILD ? 0 : 3000),
              cl::desc("Memory that one may take, or 0"));
static cl::opt<std::string> output("output", cl::init("findings"),
                                   cl::desc("The folder of findings"));

static cl::opt<bool> damageBytecode("bytecode",
                                    cl::desc("Damage bytecode instead"));
static cl::opt<std::string>
    knownFile("known", cl::desc("A file with what not to report"));

/// The lines of the file of known findings.
static std::vector<std::string> readKnown() {
  std::vector<std::string> known;
  if (knownFile.empty())
    return known;
  auto buffer = llvm::MemoryBuffer::getFile(knownFile);
  if (!buffer) {
    llvm::errs() << "can't read " << knownFile << "\n";
    exit(1);
  }
  llvm::SmallVector<llvm::StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines)
    if (!line.starts_with("#"))
      known.push_back(line.str());
  return known;
}

/// Texts of files, at their lines `// -----`.
static std::vector<std::string> readCorpus() {
  std::vector<std::string> corpus;
  for (const std::string &file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer) {
      llvm::errs() << "can't read " << file << "\n";
      exit(1);
    }
    llvm::SmallVector<llvm::StringRef> parts;
    (*buffer)->getBuffer().split(parts, "// -----\n");
    for (llvm::StringRef part : parts)
      if (part.size() < 40000 && !part.trim().empty())
        corpus.push_back(part.str());
  }
  return corpus;
}

/// Runs mutants until the end, or until one ends this process.
[[noreturn]] static void runChild(Progress &progress,
                                  const std::vector<std::string> &corpus,
                                  const TextMutator &mutator, uint64_t end,
                                  Clock::time_point deadline) {
  if (megabytes) {
    rlimit limit{megabytes << 20, megabytes << 20};
    setrlimit(RLIMIT_AS, &limit);
  }
  installHandlers(progress);
  Runner runner(progress, damageBytecode);
  while (progress.number < end && Clock::now() < deadline) {
    Random random(seed * 0x9E3779B97F4A7C15 + progress.number);
    progress.begin();
    runner.run(pick(random, corpus), mutator, random);
    ++progress.number;
  }
  _exit(0);
}

/// Seconds of processors that a process has had.
static double getProcessorSeconds(pid_t process) {
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &time))
    return 0;
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/// Waits for a child, and stops one that computes for too long over a mutant,
/// or waits far longer. Returns what ended it, or nothing where it is done.
static std::string watch(pid_t child, const Progress &progress) {
  uint64_t last = UINT64_MAX;
  Clock::time_point since = Clock::now();
  double computed = 0;
  while (true) {
    int status;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status))
        return std::string("signal ") + strsignal(WTERMSIG(status));
      int code = WEXITSTATUS(status);
      return code == 0 ? "" : describeExit(code, progress);
    }
    Clock::time_point now = Clock::now();
    if (uint64_t number = progress.number; number != last) {
      last = number;
      since = now;
      computed = getProcessorSeconds(child);
    }
    if (getProcessorSeconds(child) - computed > patience ||
        now - since > std::chrono::duration<double>(60 * patience)) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "takes more than " + std::to_string(int(patience)) + " seconds";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

static void report(const Progress &progress, Clock::time_point start,
                   const Findings &findings) {
  double passed = std::chrono::duration<double>(Clock::now() - start).count();
  uint64_t done = progress.number - first;
  llvm::outs() << llvm::formatv(
      "{{\"seed\": {0}, \"next\": {1}, \"mutants\": {2}, \"parsed\": {3}, "
      "\"passed\": {4}, \"seconds\": {5:F1}, \"findings\": {6}, \"known\": "
      "{7}}\n",
      uint64_t(seed), uint64_t(progress.number), done,
      uint64_t(progress.parsed), uint64_t(progress.passed), passed,
      findings.size(), findings.getNumKnown());
  llvm::outs().flush();
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(
      argc, argv, "kvcache-mutate: mutants through parser and passes\n");
  std::vector<std::string> corpus = readCorpus();
  TextMutator mutator(corpus);
  Progress &progress = Progress::share();
  progress.number = first;
  uint64_t end = count > UINT64_MAX - first ? UINT64_MAX : first + count;
  auto start = Clock::now();
  auto deadline = start + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(seconds));
  Findings findings(output, seed, readKnown());
  while (progress.number < end && Clock::now() < deadline) {
    pid_t child = fork();
    if (child == 0)
      runChild(progress, corpus, mutator, end, deadline);
    std::string reason = watch(child, progress);
    if (reason.empty())
      continue;
    findings.add(reason, progress);
    ++progress.number;
  }
  report(progress, start, findings);
  return findings.size() != 0;
}
