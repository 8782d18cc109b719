//===- Run.cpp - One mutant -----------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Run.h"
#include "OpMutator.h"

#include "kvcache/Compile/Source.h"
#include "kvcache/Emulator/Pipelines.h"
#include "kvcache/InitAll.h"
#include "kvcache/Support/Nesting.h"
#include "kvcache/Support/Verification.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::kvcache::fuzz;

/// The passes that a mutant goes through. The last ones use LLVM's code
/// generator.
static constexpr StringLiteral kPasses[] = {
    "canonicalize,cse",
    "inline,sccp,int-range-optimizations,loop-invariant-code-motion,"
    "canonicalize",
    "mem2reg,remove-dead-values,symbol-dce,control-flow-sink",
    "kvcache-bounds-checks",
    "kvcache-bounds-checks,kvcache-to-cpu",
    "kvcache-to-cpu",
    "kvcache-to-emulator{chip=sm_80}",
    "kvcache-to-emulator{chip=sm_90a}",
    "kvcache-to-emulator{chip=sm_100a sanitize=0}",
    "kvcache-bounds-checks,kvcache-to-emulator{chip=sm_100a meter=1}",
    "kvcache-plan-attention{chip=sm_90a},kvcache-split-attention,"
    "kvcache-tile-attention{chip=sm_90a checks=1},kvcache-expand-ops{for-gpu=1 "
    "chip=sm_90a}",
    "kvcache-split-attention,kvcache-tile-attention{chip=sm_100a},kvcache-"
    "expand-ops{for-gpu=1 checks=1}",
    "kvcache-split-attention,kvcache-expand-ops{checks=1}",
    "kvcache-schedule-attention,kvcache-lower-fragments",
    "kvcache-hoist-lookups,canonicalize,kvcache-hoist-lookups",
    "convert-kvcache-to-memref",
    "kvcache-check-input,convert-kvcache-to-memref,canonicalize,cse,"
    "kvcache-split-addresses",
    "kvcache-expand-copies,convert-kvcache-to-memref",
    "kvcache-name-kernel-args,kvcache-attach-targets{chip=sm_90a},kvcache-"
    "expand-copies",
    "kvcache-attach-targets{chip=sm_80},kvcache-expand-copies,convert-kvcache-"
    "to-memref",
    "kvcache-attach-targets{chip=sm_100a},kvcache-expand-copies,convert-"
    "kvcache-to-memref",
    "kvcache-flatten-kernel-args",
    "convert-kvcache-to-memref,kvcache-flatten-kernel-args",
    "gpu.module(kvcache-inline-into-kernels)",
    "kvcache-inline-calls",
    "gpu.module(kvcache-mark-descriptors,kvcache-bound-registers)",
    "gpu.module(kvcache-kernels-to-nvvm)",
    "convert-nvvm-to-emulator",
    "kvcache-pack-shared-memory",
    "kvcache-narrow-integers",
    "kvcache-hoist-uniform",
    "kvcache-cache-operators",
    "convert-kvcache-to-memref,kvcache-narrow-floats",
    "convert-kvcache-to-memref,kvcache-floats-as-bits",
    "kvcache-expand-copies,convert-kvcache-to-memref,convert-kvcache-to-nvvm",
    "convert-kvcache-checks",
    "kvcache-wrap-parallel-bodies",
    "kvcache-expand-for-llvm",
    "convert-kvcache-to-memref,kvcache-prepare-host",
    "convert-kvcache-to-memref,kvcache-host-memory-spaces",
    "kvcache-annotate-loops,kvcache-drop-hints,kvcache-track-host-memory",
    "kvcache-check-input,convert-kvcache-checks,convert-to-llvm,"
    "kvcache-inline-checks",
    "kvcache-check-lowered",
    "kvcache-to-ptx{chip=sm_80 opt-level=0}",
    "kvcache-to-ptx{chip=sm_90a opt-level=1 host=1}",
    "kvcache-to-ptx{chip=sm_100a opt-level=0}",
};
static constexpr size_t kNumSlow = 3;

/// One in so many mutants goes to a code generator.
static constexpr size_t kSlowPeriod = 40;

namespace {
/// Verifies after each pass of ours what was right before it. Where a pass of
/// MLIR makes invalid IR, its verifier or the pipeline's says so.
class VerifyAfter : public PassInstrumentation {
public:
  explicit VerifyAfter(Progress &progress) : progress(progress) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (isOurs(pass))
      wasValid = succeeded(verify(op));
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    // Ops that a chip lacks are invalid from the moment that it is known.
    if (isOurs(pass) && wasValid &&
        pass->getArgument() != "kvcache-attach-targets" && failed(verify(op)))
      stop(pass);
  }

private:
  static bool isOurs(Pass *pass) {
    return pass->getArgument().contains("kvcache");
  }

  void stop(Pass *pass) {
    std::string note = pass->getArgument().str();
    note += "\n";
    note += progress.note;
    Progress::copy(progress.note, Progress::kNoteBytes, note);
    _exit(Invalid);
  }

  Progress &progress;
  bool wasValid = true;
};
} // namespace

Runner::Runner(Progress &progress, bool isBytecode)
    : progress(progress), isBytecode(isBytecode) {
  registerAllPasses();
  registerEmulator();
}

Runner::~Runner() = default;

void Runner::renewContext() {
  if (context && ++uses < 100)
    return;
  uses = 0;
  context = std::make_unique<MLIRContext>(kvcache::getRegistry(),
                                          MLIRContext::Threading::DISABLED);
  context->printOpOnDiagnostic(false);
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return;
    hasError = true;
    if (StringRef(progress.stage) == kSyntax)
      progress.stage = "after an error of syntax";
    Progress::copy(progress.note, Progress::kNoteBytes, diagnostic.str());
  });
}

OwningOpRef<ModuleOp> Runner::parse(StringRef text) {
  hasError = false;
  Block block;
  ParserConfig config(context.get(), /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module;
  if (succeeded(parseSourceString(text, &block, config, "mutant")))
    module = mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
        &block, context.get(), UnknownLoc::get(context.get()));
  if (module &&
      (failed(checkBeforeVerification(*module)) || failed(verify(*module))))
    module = nullptr;
  if (!module && !hasError)
    _exit(Silent);
  return module;
}

/// Parses in a process of its own. Where a block uses a value ahead of a region
/// that defines it, and an error of syntax follows, upstream's parser frees the
/// region first and then writes to it; what comes of that is not reported.
bool Runner::parsesElsewhere(StringRef text) {
  progress.stage = kSyntax.data();
  pid_t child = fork();
  if (child < 0)
    llvm::report_fatal_error("no process to parse in");
  if (child == 0) {
    alarm(10);
    ParserConfig config(context.get(), /*verifyAfterParse=*/false);
    _exit(parseSourceString<ModuleOp>(text, config, "mutant") ? 0 : 1);
  }
  int status;
  while (waitpid(child, &status, 0) < 0)
    ;
  if (WIFEXITED(status) && WEXITSTATUS(status) > 1)
    _exit(WEXITSTATUS(status));
  if (WIFSIGNALED(status) && StringRef(progress.stage) == kSyntax) {
    // The note is there already.
    dropHandlers();
    raise(WTERMSIG(status));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Leaves a mutant in `progress.text` as the generic form of a changed module.
/// A module that is broken can damage the memory of the process that changes
/// and prints it, so that is a process of its own. Returns false where it
/// fails.
bool Runner::mutateOps(StringRef text, uint64_t number) {
  ParserConfig config(context.get(), /*verifyAfterParse=*/false);
  auto module = parseSourceString<ModuleOp>(text, config, "original");
  if (!module)
    return false;
  pid_t child = fork();
  if (child < 0)
    llvm::report_fatal_error("no process for a mutation");
  if (child == 0) {
    dropHandlers();
    // Damaged memory may also end in a loop.
    alarm(10);
    Random random(number);
    fuzz::mutate(*module, random);
    std::string mutant;
    llvm::raw_string_ostream stream(mutant);
    module->print(stream,
                  OpPrintingFlags().printGenericOpForm().assumeVerified());
    if (mutant.size() >= Progress::kTextBytes)
      _exit(1);
    Progress::copy(progress.text, Progress::kTextBytes, mutant);
    _exit(0);
  }
  int status;
  while (waitpid(child, &status, 0) < 0)
    ;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string Runner::mutate(StringRef text, const TextMutator &mutator,
                           Random &random) {
  if (below(random, 3) == 0 || !mutateOps(text, random()))
    return mutator.mutate(text, random);
  if (below(random, 8) == 0)
    return mutator.mutate(progress.text, random);
  return progress.text;
}

void Runner::run(StringRef text, const TextMutator &mutator, Random &random) {
  renewContext();
  if (isBytecode)
    return readDamaged(text, random);
  std::string mutant = mutate(text, mutator, random);
  bool isSlow = below(random, kSlowPeriod) == 0;
  size_t fast = std::size(kPasses) - kNumSlow;
  StringRef passes =
      kPasses[isSlow ? fast + below(random, kNumSlow) : below(random, fast)];
  if (mutant.size() >= Progress::kTextBytes || findUnreadable(mutant))
    return;
  bool mayBreakSyntax = mutant != progress.text;
  Progress::copy(progress.text, Progress::kTextBytes, mutant);
  if (mayBreakSyntax && !parsesElsewhere(mutant))
    return;
  progress.stage = "parsing";
  OwningOpRef<ModuleOp> module = parse(mutant);
  if (!module)
    return;
  ++progress.parsed;
  Progress::copy(progress.passes, Progress::kNoteBytes, passes);
  if (below(random, 8) == 0)
    roundTrip(*module);
  runPasses(*module, passes);
}

void Runner::runPasses(ModuleOp module, StringRef passes) {
  progress.stage = "passes";
  hasError = false;
  progress.note[0] = '\0';
  PassManager passManager(context.get());
  passManager.enableVerifier(false);
  passManager.addInstrumentation(std::make_unique<VerifyAfter>(progress));
  if (failed(parsePassPipeline(passes, passManager))) {
    Progress::copy(progress.note, Progress::kNoteBytes, "no such passes");
    _exit(FatalError);
  }
  if (succeeded(passManager.run(module)))
    ++progress.passed;
  else if (!hasError)
    _exit(Silent);
}

/// The ops of the dialect with their attributes and types, in order.
static std::string describeOps(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() != "kvcache")
      return;
    stream << op->getName() << ' ' << op->getAttrDictionary() << " : "
           << op->getOperandTypes() << " -> " << op->getResultTypes() << '\n';
  });
  return text;
}

/// Ops of the dialect are the same when they are read again, from text and from
/// bytecode. Those of others may print less than they have.
void Runner::roundTrip(ModuleOp module) {
  progress.stage = "round trip";
  std::string text, bytes, expected = describeOps(module);
  llvm::raw_string_ostream textStream(text), byteStream(bytes);
  module.print(textStream);
  if (failed(writeBytecodeToFile(module, byteStream)))
    return;
  for (StringRef source : {StringRef(text), StringRef(bytes)}) {
    OwningOpRef<ModuleOp> copy = parse(source);
    if (copy ? describeOps(*copy) == expected : source == text)
      continue;
    Progress::copy(progress.note, Progress::kNoteBytes,
                   copy ? "printing: other ops are read again"
                        : "printing: bytecode is not read again");
    _exit(Invalid);
  }
}

/// Changes some bytes of a module's bytecode, anywhere after the first word,
/// and reads it. The text of a finding is its bytes in hexadecimal.
void Runner::readDamaged(StringRef text, Random &random) {
  OwningOpRef<ModuleOp> module = parse(text);
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (!module || failed(writeBytecodeToFile(*module, stream)))
    return;
  for (size_t count = 1 + below(random, 4); count; --count) {
    size_t at = 4 + below(random, bytes.size() - 4);
    switch (below(random, 8)) {
    case 0:
      bytes.erase(at, 1 + below(random, 4));
      break;
    case 1:
      bytes.insert(at, 1 + below(random, 4), char(below(random, 256)));
      break;
    case 2:
      bytes.resize(std::max<size_t>(at, 5));
      break;
    case 3:
      bytes[at] = char(0xFF);
      break;
    case 4:
      bytes[at] ^= char(1 << below(random, 8));
      break;
    default:
      bytes[at] = char(below(random, 256));
    }
  }
  Progress::copy(progress.text, Progress::kTextBytes, llvm::toHex(bytes));
  progress.stage = "reading";
  if (parse(bytes))
    ++progress.parsed;
}
