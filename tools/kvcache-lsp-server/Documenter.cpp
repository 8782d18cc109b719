//===- Documenter.cpp - documentation of ops for editors ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Documenter.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <optional>

using namespace mlir::kvcache;

namespace json = llvm::json;

using llvm::StringRef;

namespace {

constexpr StringRef dialect = "kvcache.";

/// The documentation of all ops, from mlir-tblgen.
constexpr StringRef allDocumentation =
#include "OpDocumentation.inc"
    ;

std::string printId(const json::Value &id) {
  std::string text;
  llvm::raw_string_ostream(text) << id;
  return text;
}

/// The offset of a position of the protocol, whose characters are UTF-16.
size_t getOffset(StringRef text, int64_t line, int64_t character) {
  size_t offset = 0;
  for (; line > 0 && offset < text.size(); ++offset)
    line -= text[offset] == '\n';
  for (; character > 0 && offset < text.size() && text[offset] != '\n';
       ++offset) {
    auto byte = static_cast<unsigned char>(text[offset]);
    bool continues = (byte & 0xC0) == 0x80;
    character -= continues ? 0 : byte >= 0xF0 ? 2 : 1;
  }
  while (offset < text.size() && (text[offset] & 0xC0) == 0x80)
    ++offset;
  return offset;
}

bool isPartOfName(char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }

/// The part of the name at an offset that stands before it.
StringRef getStartOfName(StringRef text, size_t offset) {
  size_t start = offset;
  while (start > 0 && isPartOfName(text[start - 1]))
    --start;
  return text.slice(start, offset);
}

json::Object makeMarkdown(std::string text) {
  return json::Object{{"kind", "markdown"}, {"value", std::move(text)}};
}

} // namespace

Documenter::Documenter() {
  // "### `kvcache.load` (kvcache::LoadOp)", and the text up to the tables.
  StringRef rest = allDocumentation;
  while (true) {
    rest = rest.split("### `").second;
    if (rest.empty())
      return;
    auto [name, text] = rest.split('`');
    text = text.split('\n').second;
    text = text.take_front(
        std::min({text.find("\n### `"), text.find("\nTraits: "),
                  text.find("\nInterfaces: "), text.find("\n#### ")}));
    documentation[name] = text.trim();
  }
}

void Documenter::seeRequest(const json::Object &message) {
  std::optional<StringRef> method = message.getString("method");
  const json::Object *parameters = message.getObject("params");
  if (!method || !parameters)
    return;
  const json::Object *document = parameters->getObject("textDocument");
  std::optional<StringRef> uri =
      document ? document->getString("uri") : std::nullopt;
  if (!uri)
    return;

  std::scoped_lock lock(mutex);
  if (*method == "textDocument/didOpen") {
    documents[*uri] = document->getString("text").value_or("").str();
  } else if (*method == "textDocument/didChange") {
    // The server asks for whole documents.
    if (const json::Array *changes = parameters->getArray("contentChanges"))
      for (const json::Value &change : *changes)
        if (const json::Object *object = change.getAsObject())
          documents[*uri] = object->getString("text").value_or("").str();
  } else if (*method == "textDocument/didClose") {
    documents.erase(*uri);
  } else if (const json::Value *id = message.get("id")) {
    bool isCompletion = *method == "textDocument/completion";
    if (isCompletion || *method == "textDocument/hover")
      questions[printId(*id)] = getQuestion(*parameters, isCompletion);
  }
}

Documenter::Question Documenter::getQuestion(const json::Object &parameters,
                                             bool isCompletion) {
  Question question{isCompletion, ""};
  StringRef uri = *parameters.getObject("textDocument")->getString("uri");
  const json::Object *position = parameters.getObject("position");
  auto document = documents.find(uri);
  if (!position || document == documents.end())
    return question;
  StringRef text = document->second;
  size_t offset = getOffset(text, position->getInteger("line").value_or(0),
                            position->getInteger("character").value_or(0));
  question.text = getStartOfName(text, offset);
  if (!isCompletion)
    question.text += text.drop_front(offset).take_while(isPartOfName);
  return question;
}

void Documenter::editResponse(json::Object &message) {
  const json::Value *id = message.get("id");
  json::Value *result = message.get("result");
  if (!id || !result)
    return;
  std::scoped_lock lock(mutex);
  auto question = questions.find(printId(*id));
  if (question == questions.end())
    return;
  if (question->second.isCompletion)
    documentCompletion(question->second, *result);
  else
    documentHover(question->second, *result);
  questions.erase(question);
}

void Documenter::documentCompletion(const Question &question,
                                    json::Value &result) {
  json::Object *list = result.getAsObject();
  json::Array *items = list ? list->getArray("items") : nullptr;
  if (!items || !StringRef(question.text).starts_with(dialect))
    return;
  for (json::Value &item : *items) {
    json::Object *object = item.getAsObject();
    if (!object || object->getString("detail") != "operation")
      continue;
    StringRef label = object->getString("label").value_or("");
    auto found = documentation.find((dialect + label).str());
    if (found != documentation.end())
      (*object)["documentation"] = makeMarkdown(found->second.str());
  }
}

void Documenter::documentHover(const Question &question, json::Value &result) {
  auto found = documentation.find(question.text);
  if (found == documentation.end())
    return;
  std::string text = "`" + question.text + "`: " + found->second.str();
  if (!result.getAsObject())
    result = json::Object();
  json::Object &hover = *result.getAsObject();
  if (const json::Object *contents = hover.getObject("contents"))
    text += "\n\n---\n\n" + contents->getString("value").value_or("").str();
  hover["contents"] = makeMarkdown(std::move(text));
}
