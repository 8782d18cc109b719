//===- Documenter.h - documentation of ops for editors ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TOOLS_LSP_DOCUMENTER_H
#define KVCACHE_TOOLS_LSP_DOCUMENTER_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <mutex>
#include <string>

namespace mlir::kvcache {

/// Adds the documentation of our ops to what a language server answers.
///
/// Upstream's server has the names of the ops, not their documentation. This
/// class sees every message of an editor, remembers its documents and which op
/// each request is about, and edits the server's responses. Two threads may
/// call the two functions.
class Documenter {
public:
  Documenter();

  void seeRequest(const llvm::json::Object &message);
  void editResponse(llvm::json::Object &message);

private:
  /// The subject of a request.
  struct Question {
    bool isCompletion;
    /// The text before a completion, or the name of an op.
    std::string text;
  };

  Question getQuestion(const llvm::json::Object &parameters, bool isCompletion);
  void documentCompletion(const Question &question, llvm::json::Value &result);
  void documentHover(const Question &question, llvm::json::Value &result);

  /// Markdown by the name of the op.
  llvm::StringMap<llvm::StringRef> documentation;

  std::mutex mutex;
  llvm::StringMap<std::string> documents;
  std::map<std::string, Question> questions;
};

} // namespace mlir::kvcache

#endif // KVCACHE_TOOLS_LSP_DOCUMENTER_H
