//===- TuningFile.cpp - Configs that were measured on a GPU ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuningFile.h"

#include "CompleteConfig.h"
#include "kvcache/Transforms/AttentionTuning.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::kvcache;

constexpr StringLiteral kFormat = "kvcache-tuning";
constexpr int64_t kVersion = 1;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Returns what is wrong with the contents of a file for a chip; empty if they
/// are right.
static std::string findFault(const llvm::json::Object *file, StringRef chip) {
  if (!file || file->getString("format") != kFormat)
    return "is no tuning file";
  std::optional<int64_t> version = file->getInteger("version");
  if (version != kVersion)
    return llvm::formatv("has version {0}, and this compiler reads version {1}",
                         version.value_or(0), kVersion);
  StringRef own = file->getString("chip").value_or("");
  if (own != chip)
    return llvm::formatv("is for chip '{0}', and kernels are for '{1}'", own,
                         chip);
  return file->getObject("shapes") ? "" : "has no 'shapes'";
}

FailureOr<TuningFile> TuningFile::read(Location loc, StringRef path,
                                       ArrayRef<std::string> chips) {
  if (chips.size() != 1)
    return emitError(loc, "expects one chip with 'tuning', got ")
           << chips.size();
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return emitError(loc, "cannot read tuning file '")
           << path << "': " << buffer.getError().message();
  llvm::Expected<llvm::json::Value> contents =
      llvm::json::parse((*buffer)->getBuffer());
  if (!contents)
    return emitError(loc, "tuning file '")
           << path << "' is damaged: " << toString(contents.takeError());
  llvm::json::Object *file = contents->getAsObject();
  if (std::string fault = findFault(file, chips.front()); !fault.empty())
    return emitError(loc, "tuning file '") << path << "' " << fault;
  return TuningFile(path, std::move(*file->getObject("shapes")));
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

static std::string toText(const llvm::json::Value *value) {
  if (std::optional<StringRef> text = value->getAsString())
    return text->str();
  return llvm::formatv("{0}", *value);
}

/// Returns the attribute of the fields in an entry; null if they are none.
static AttentionConfigAttr parseConfig(MLIRContext *context,
                                       const llvm::json::Object &fields) {
  AttentionConfig names;
  SmallVector<std::string> texts;
  AttentionConfig::forEachField(names, [&](StringRef name, const auto &) {
    if (const llvm::json::Value *value = fields.get(name))
      texts.push_back(llvm::formatv("{0} = {1}", name, toText(value)));
  });
  if (texts.size() != fields.size())
    return {};
  std::string text =
      llvm::formatv("#kvcache.attention_config<{0}>", llvm::join(texts, ", "));
  return dyn_cast_or_null<AttentionConfigAttr>(parseAttribute(text, context));
}

static std::string print(AttentionOp op, const AttentionConfig &config) {
  return llvm::formatv("{0}",
                       AttentionConfigAttr::get(op.getContext(), config));
}

/// Whether all fields that are set have the same value in another config.
static bool areKept(const AttentionConfig &fields,
                    const AttentionConfig &config) {
  SmallVector<int64_t> wanted = fields.encode(), found = config.encode();
  return llvm::all_of(llvm::zip(wanted, found), [](auto pair) {
    return std::get<0>(pair) < 0 || std::get<0>(pair) == std::get<1>(pair);
  });
}

std::string TuningFile::complete(AttentionOp op,
                                 const llvm::json::Object &entry,
                                 const AttentionConfig &planned,
                                 const Target &target,
                                 AttentionConfig &config) const {
  const llvm::json::Object *fields = entry.getObject("config");
  std::string reason;
  // A config that is refused is no error of the op.
  ScopedDiagnosticHandler handler(op.getContext(), [&](Diagnostic &diagnostic) {
    std::string text = diagnostic.str();
    StringRef rule = text;
    rule.consume_front("'kvcache.attention' op ");
    reason = rule.str();
    return success();
  });
  AttentionConfigAttr tuned =
      fields ? parseConfig(op.getContext(), *fields) : AttentionConfigAttr();
  if (!tuned)
    return "expects 'config' to have fields of a config";
  AttentionConfigAttr own = op.getConfigAttr();
  op.setConfigAttr(tuned);
  FailureOr<AttentionConfig> completed = failure();
  if (succeeded(verify(op)))
    completed = completeConfig(op, target);
  op.setConfigAttr(own);
  if (failed(completed))
    return reason;
  if (own && !areKept(own.getConfig(), *completed))
    return "expects 'config' to keep the fields of the op's";
  AttentionConfig bits = getBitFields(op, planned);
  bool mayDiffer = entry.getBoolean("other_bits").value_or(false);
  if (!mayDiffer && !areKept(bits, *completed))
    return "expects 'config' to have " + print(op, bits) +
           " for equal bits, got " + print(op, *completed);
  config = *completed;
  return "";
}

AttentionConfig TuningFile::choose(AttentionOp op,
                                   const AttentionConfig &planned,
                                   const Target &target) const {
  const llvm::json::Object *entry = shapes.getObject(describeShape(op));
  if (!entry)
    return planned;
  AttentionConfig config = planned;
  std::string reason = complete(op, *entry, planned, target, config);
  if (!reason.empty())
    op.emitWarning("does not use the config of tuning file '")
        << path << "': " << reason;
  return config;
}
