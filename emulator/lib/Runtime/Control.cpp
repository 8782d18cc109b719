//===- Control.cpp - Printing, assertions and traps -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Control.h"
#include "Block.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Reading memory
//===----------------------------------------------------------------------===//

/// Fails as an error of the thread if it may not read the bytes, as far as
/// that is known.
static void checkReadable(Thread &thread, const KVCacheSite *site,
                          const void *pointer, int64_t bytes) {
  Block &block = *thread.block;
  const char *last = static_cast<const char *>(pointer) + bytes - 1;
  if (thread.fiber->contains(pointer) && thread.fiber->contains(last))
    return accessStack(thread, site, pointer, bytes, KVCacheAccessRead);
  if (const Block *owner = block.cluster.findBlock(pointer)) {
    owner->getSharedOffset(thread, site, pointer, bytes);
    return;
  }
  if (!pointer)
    block.fail(thread, site, "reads through a null pointer");
  block.sanitizer.accessGlobal(thread, site, pointer, bytes, KVCacheAccessRead);
}

static std::string readString(Thread &thread, const KVCacheSite *site,
                              const char *text) {
  std::string result;
  for (;; ++text) {
    checkReadable(thread, site, text, 1);
    if (!*text)
      return result;
    result += *text;
  }
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

namespace {

/// The text that one call prints.
class Printer {
public:
  Printer(Thread &thread, const KVCacheSite *site, const void *arguments)
      : thread(thread), site(site), next(static_cast<const char *>(arguments)) {
  }

  std::string print(const std::string &format) {
    for (size_t at = 0; at < format.size();) {
      size_t percent = std::min(format.find('%', at), format.size());
      text.append(format, at, percent - at);
      at = percent < format.size() ? printOne(format, percent) : percent;
    }
    return text;
  }
  int32_t getCount() const { return count; }

private:
  /// The next argument, which is aligned to its size.
  template <typename T> T take() {
    auto address = reinterpret_cast<uintptr_t>(next);
    next += (sizeof(T) - address % sizeof(T)) % sizeof(T);
    checkReadable(thread, site, next, sizeof(T));
    T value;
    std::memcpy(&value, next, sizeof(T));
    next += sizeof(T);
    return value;
  }

  /// Prints the conversion at `begin`, which is a '%'. Returns where the format
  /// goes on.
  size_t printOne(const std::string &format, size_t begin) {
    size_t at = begin + 1;
    std::string flags = getFlags(format, at);
    // What C has more: char and short come as int.
    size_t length = at;
    while (at < format.size() && std::strchr("hljzt", format[at]))
      ++at;
    bool isShort = at > length && format[length] == 'h';
    std::string size = format.substr(length, at - length);
    if (at == format.size()) {
      text.append(format, begin, std::string::npos);
      return at;
    }
    printValue("%" + flags, size, isShort || size.empty(), format[at]);
    return at + 1;
  }

  /// Flags, width and precision of the conversion, with numbers in place of
  /// stars; `at` points after them. A width that is too large is cut.
  std::string getFlags(const std::string &format, size_t &at) {
    std::string flags;
    auto isDigit = [&] {
      return at < format.size() && format[at] >= '0' && format[at] <= '9';
    };
    while (at < format.size() && std::strchr("-+ #0", format[at]))
      flags += format[at++];
    while (at < format.size() &&
           (isDigit() || format[at] == '*' || format[at] == '.')) {
      if (format[at] == '.') {
        flags += format[at++];
        continue;
      }
      constexpr int64_t most = 4096;
      int64_t number = 0;
      if (format[at] == '*') {
        number = take<int32_t>();
        ++at;
      }
      for (; isDigit(); ++at)
        number = std::min(most, number * 10 + (format[at] - '0'));
      flags += std::to_string(std::clamp(number, -most, most));
    }
    return flags;
  }

  void printValue(const std::string &flags, const std::string &size, bool isInt,
                  char conversion) {
    ++count;
    switch (conversion) {
    case '%':
      --count;
      text += '%';
      return;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      return isInt ? append(flags + size + conversion, take<int32_t>())
                   : append(flags + "ll" + conversion,
                            static_cast<long long>(take<int64_t>()));
    case 'c':
      return append(flags + conversion, take<int32_t>());
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return append(flags + conversion, take<double>());
    case 'p':
      return append(flags + conversion, take<const void *>());
    case 's':
      return printString(flags);
    default:
      --count;
      text += flags + size + conversion;
    }
  }

  void printString(const std::string &flags) {
    const auto *string = take<const char *>();
    std::string value =
        string ? readString(thread, site, string) : std::string("(null)");
    append(flags + 's', value.c_str());
  }

  template <typename T> void append(const std::string &format, T value) {
    int bytes = std::snprintf(nullptr, 0, format.c_str(), value);
    if (bytes < 0)
      return;
    std::string printed(bytes + 1, '\0');
    std::snprintf(printed.data(), printed.size(), format.c_str(), value);
    printed.pop_back();
    text += printed;
  }

  Thread &thread;
  const KVCacheSite *site;
  const char *next;
  std::string text;
  int32_t count = 0;
};

} // namespace

int32_t kvcacheEmulatorPrint(KVCacheThread *self, const KVCacheSite *site,
                             const char *format, const void *arguments) {
  Thread &thread = Thread::get(self);
  if (!format)
    return -1;
  Printer printer(thread, site, arguments);
  std::string text = printer.print(readString(thread, site, format));
  std::fwrite(text.data(), 1, text.size(), stdout);
  thread.printed = std::move(text);
  return printer.getCount();
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

/// Finds the values that belong to an assertion's message. A check has the same
/// text for all values, and prints these before it fails.
static std::string findValues(const Thread &thread,
                              const std::string &message) {
  size_t at = thread.printed.find(message);
  if (message.empty() || at == std::string::npos)
    return "";
  std::string values = thread.printed.substr(at + message.size());
  return values.substr(0, values.find('\n'));
}

void kvcacheEmulatorAssertFail(KVCacheThread *self, const KVCacheSite *site,
                               const char *message, const char *file,
                               uint32_t line, const char *function) {
  Thread &thread = Thread::get(self);
  auto read = [&](const char *text) { return readString(thread, site, text); };
  std::string asserted = read(message);
  std::string text = "fails an assertion: " + read(file) + ":" +
                     std::to_string(line) + ": " + read(function) +
                     ": Assertion `" + asserted + "` failed" +
                     findValues(thread, asserted);
  thread.block->fail(thread, site, text);
}

void kvcacheEmulatorTrap(KVCacheThread *self, const KVCacheSite *site) {
  Thread &thread = Thread::get(self);
  thread.block->fail(thread, site, "traps");
}

void kvcacheEmulatorFail(KVCacheThread *self, const KVCacheSite *site,
                         uint32_t reason) {
  const char *messages[] = {
      "divides by zero", "divides the least number of its type by -1",
      "reaches code that the compiler assumed to be unreachable"};
  Thread &thread = Thread::get(self);
  thread.block->fail(thread, site, messages[reason]);
}

uint32_t kvcacheEmulatorIsInSpace(KVCacheThread *self, const KVCacheSite *,
                                  const void *pointer, uint32_t space) {
  Thread &thread = Thread::get(self);
  const Block &block = *thread.block;
  bool isShared = block.isShared(pointer);
  bool isOfCluster = isShared || block.cluster.isShared(pointer);
  bool isLocal = thread.fiber && thread.fiber->contains(pointer);
  switch (space) {
  case KVCacheSpaceShared:
    return isShared;
  case KVCacheSpaceSharedCluster:
    return isOfCluster;
  case KVCacheSpaceLocal:
    return isLocal;
  default:
    return !isOfCluster && !isLocal;
  }
}

void kvcacheEmulatorExit(KVCacheThread *self, const KVCacheSite *) {
  Thread &thread = Thread::get(self);
  thread.block->cluster.exit(thread);
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

void kvcacheEmulatorLoop(KVCacheThread *self, const KVCacheSite *site) {
  Thread &thread = Thread::get(self);
  thread.block->tick(thread, site);
}

void kvcacheEmulatorManyLoops(KVCacheThread *self, const KVCacheSite *site) {
  Thread &thread = Thread::get(self);
  thread.block->cluster.checkTime(thread, site);
}

void kvcacheEmulatorSleep(KVCacheThread *self, const KVCacheSite *site,
                          uint32_t nanoseconds) {
  constexpr uint32_t most = 1000000;
  Thread &thread = Thread::get(self);
  if (nanoseconds > most)
    thread.block->fail(thread, site,
                       "sleeps for " + std::to_string(nanoseconds) +
                           " ns: a thread can sleep for 1000000 ns at most");
  // With no other thread to run here, it may wait for other blocks. Not for
  // long each time, so that it ends if they never do what it waits for.
  constexpr uint32_t mostForOthers = 1000;
  if (!thread.block->spin(thread, site))
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(std::min(nanoseconds, mostForOthers)));
}

uint64_t kvcacheEmulatorClock(KVCacheThread *, const KVCacheSite *) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
