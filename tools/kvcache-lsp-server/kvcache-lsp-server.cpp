//===- kvcache-lsp-server.cpp - the dialect in editors --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's server runs in a child process. The messages between it and the
// editor pass through this process, which adds the documentation of our ops.
//
//===----------------------------------------------------------------------===//

#include "Documenter.h"

#include "kvcache/InitAll.h"
#include "kvcache/Support/Nesting.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace mlir::kvcache;

namespace json = llvm::json;

namespace {

using EditMessage = llvm::function_ref<void(json::Object &)>;

/// Reads so many bytes, or those that there are.
std::string readBytes(std::FILE *in, uint64_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    constexpr uint64_t most = 1 << 16;
    size_t before = bytes.size();
    bytes.resize(before + std::min(most, size - before));
    size_t count = std::fread(&bytes[before], 1, bytes.size() - before, in);
    bytes.resize(before + count);
    if (count == 0)
      break;
  }
  return bytes;
}

std::string editMessage(std::string text, EditMessage edit) {
  llvm::Expected<json::Value> message = json::parse(text);
  if (!message) {
    llvm::consumeError(message.takeError());
    return text;
  }
  if (json::Object *object = message->getAsObject())
    edit(*object);
  std::string edited;
  llvm::raw_string_ostream(edited) << *message;
  return edited;
}

/// Copies messages until the end, and other lines as they are. A message is
/// "Content-Length: N", perhaps other headers, an empty line and N bytes.
void forward(std::FILE *in, std::FILE *out, EditMessage edit) {
  char *line = nullptr;
  size_t capacity = 0;
  uint64_t size = 0;
  bool hasSize = false;
  while (getline(&line, &capacity, in) > 0) {
    llvm::StringRef header = line;
    if (header.consume_front("Content-Length:")) {
      hasSize = !header.trim().getAsInteger(10, size);
    } else if (!hasSize) {
      std::fputs(line, out);
    } else if (header.trim().empty()) {
      std::string body = editMessage(readBytes(in, size), edit);
      std::fprintf(out, "Content-Length: %zu\r\n\r\n%s", body.size(),
                   body.c_str());
      hasSize = false;
    }
    if (std::fflush(out) != 0)
      break;
  }
  std::free(line);
}

int serve(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  return runOnDeepStack([&]() -> int {
    return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
  });
}

/// Ends when the server does, also while the editor's side stays open.
[[noreturn]] void forwardMessages(pid_t server, int toServer, int fromServer) {
  std::signal(SIGPIPE, SIG_IGN);
  Documenter documenter;
  std::thread requests([&] {
    std::FILE *out = fdopen(toServer, "w");
    forward(stdin, out,
            [&](json::Object &message) { documenter.seeRequest(message); });
    std::fclose(out);
  });
  forward(fdopen(fromServer, "r"), stdout,
          [&](json::Object &message) { documenter.editResponse(message); });
  int status = 0;
  waitpid(server, &status, 0);
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

} // namespace

int main(int argc, char **argv) {
  enum { ReadEnd, WriteEnd };
  int requests[2], responses[2];
  pid_t server = -1;
  if (pipe(requests) == 0 && pipe(responses) == 0)
    server = fork();
  if (server < 0) {
    std::perror("kvcache-lsp-server");
    return EXIT_FAILURE;
  }
  if (server > 0) {
    close(requests[ReadEnd]);
    close(responses[WriteEnd]);
    forwardMessages(server, requests[WriteEnd], responses[ReadEnd]);
  }
  dup2(requests[ReadEnd], STDIN_FILENO);
  dup2(responses[WriteEnd], STDOUT_FILENO);
  for (int end : {requests[0], requests[1], responses[0], responses[1]})
    close(end);
  return serve(argc, argv);
}
