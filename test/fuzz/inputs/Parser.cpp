//===- Parser.cpp - Any text as a type, an attribute or an op -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include "kvcache/Support/Nesting.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace mlir::kvcache;

/// A value prints as text from which it is parsed again.
template <typename T>
static void checkPrinted(T value, T (*parse)(StringRef, MLIRContext *)) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  if (parse(text, value.getContext()) != value)
    llvm::report_fatal_error(
        llvm::Twine("prints as what is parsed as another: ") + text);
}

static Type parseAnyType(StringRef text, MLIRContext *context) {
  return parseType(text, context);
}
static Attribute parseAnyAttribute(StringRef text, MLIRContext *context) {
  return parseAttribute(text, context);
}

/// The first byte says as what the rest is parsed, with a beginning that the
/// dialect's own parsers come after.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string text(reinterpret_cast<const char *>(data + 1), size - 1);
  MLIRContext &context = fuzz::getContext();
  auto begin = [&](const char *with) { return with + text; };
  // A zero byte ends a text.
  if (StringRef(text).contains('\0') || findUnreadable(text))
    return 0;
  switch (data[0] % 3) {
  case 0:
    if (Type type = parseAnyType(begin("!kvcache."), &context))
      checkPrinted(type, parseAnyType);
    return 0;
  case 1:
    if (Attribute attr = parseAnyAttribute(begin("#kvcache."), &context))
      checkPrinted(attr, parseAnyAttribute);
    return 0;
  default:
    (void)parseSourceString<ModuleOp>(
        begin("func.func @f(%i: index, %c: !kvcache.paged<bf16, "
              "#kvcache.params<num_heads = 8, head_size = 64>, page_size = "
              "16>) {\n kvcache.") +
            "\n return\n}\n",
        &context);
    return 0;
  }
}
