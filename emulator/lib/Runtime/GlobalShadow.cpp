//===- GlobalShadow.cpp - What has been written of global memory ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GlobalShadow.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static void *reserve(size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  return memory;
}

GlobalShadow::GlobalShadow()
    : chunks(static_cast<Word **>(
          reserve(sizeof(Word *) << (kAddressBits - kChunkBits)))) {}

const GlobalShadow::Word *GlobalShadow::find(uintptr_t address) const {
  constexpr uintptr_t mask = (uintptr_t{1} << kChunkBits) - 1;
  uintptr_t number = address >> kChunkBits;
  if (number >> (kAddressBits - kChunkBits))
    return nullptr;
  const Word *chunk = __atomic_load_n(&chunks[number], __ATOMIC_ACQUIRE);
  return chunk ? chunk + (address & mask) / kWordBytes : nullptr;
}

GlobalShadow::Word *GlobalShadow::get(uintptr_t address) {
  if (const Word *word = find(address))
    return const_cast<Word *>(word);
  if (!addChunk(address >> kChunkBits))
    return nullptr;
  return const_cast<Word *>(find(address));
}

GlobalShadow::Word *GlobalShadow::addChunk(uintptr_t number) {
  if (number >> (kAddressBits - kChunkBits))
    return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (!chunks[number])
    __atomic_store_n(&chunks[number],
                     static_cast<Word *>(reserve((size_t{1} << kChunkBits) /
                                                 kWordBytes * sizeof(Word))),
                     __ATOMIC_RELEASE);
  return chunks[number];
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Calls `visit` with the address of each word and the mask of its bytes until
/// it returns false.
template <uint32_t bytesOfWord, typename Visitor>
static void forEachWord(uintptr_t begin, uint64_t bytes, Visitor visit) {
  for (uintptr_t end = begin + bytes; begin < end;) {
    uintptr_t word = begin & ~uintptr_t{bytesOfWord - 1};
    uint32_t first = begin - word;
    uint32_t last = std::min<uintptr_t>(end - word, bytesOfWord);
    if (!visit(word, static_cast<uint32_t>((uint64_t{1} << last) -
                                           (uint64_t{1} << first))))
      return;
    begin = word + bytesOfWord;
  }
}

/// Neighbours in a word may be written by other threads.
template <typename Update>
void GlobalShadow::update(uintptr_t begin, uint64_t bytes, Update update) {
  forEachWord<kWordBytes>(begin, bytes, [&](uintptr_t address, Word mask) {
    Word *word = get(address);
    if (!word)
      return false;
    Word old = __atomic_load_n(word, __ATOMIC_RELAXED), wanted;
    do {
      wanted = update(old, mask, address);
    } while (wanted != old &&
             !__atomic_compare_exchange_n(word, &old, wanted, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
  });
}

void GlobalShadow::write(uintptr_t begin, uint64_t bytes) {
  update(begin, bytes,
         [](Word old, Word mask, uintptr_t) { return old | mask; });
}

uintptr_t GlobalShadow::findMissing(uintptr_t begin, uint64_t bytes) const {
  uintptr_t missing = begin + bytes;
  forEachWord<kWordBytes>(begin, bytes, [&](uintptr_t address, Word mask) {
    const Word *word = find(address);
    Word wrong = mask & ~(word ? __atomic_load_n(word, __ATOMIC_RELAXED) : 0);
    if (wrong)
      missing = address + __builtin_ctz(wrong);
    return !wrong;
  });
  return missing;
}

/// Zeroes words, and gives whole pages of them back.
static void zero(char *begin, char *end) {
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  auto roundUp = [&](char *pointer) {
    return pointer + (-reinterpret_cast<uintptr_t>(pointer) & (page - 1));
  };
  char *inner = roundUp(begin), *innerEnd = roundUp(end - page + 1);
  if (inner >= innerEnd) {
    std::memset(begin, 0, end - begin);
    return;
  }
  std::memset(begin, 0, inner - begin);
  madvise(inner, innerEnd - inner, MADV_DONTNEED);
  std::memset(innerEnd, 0, end - innerEnd);
}

void GlobalShadow::forget(uintptr_t begin, uint64_t bytes) {
  uintptr_t end = begin + bytes;
  uintptr_t inner = (begin + kWordBytes - 1) & ~uintptr_t{kWordBytes - 1};
  uintptr_t innerEnd = end & ~uintptr_t{kWordBytes - 1};
  auto forgetSome = [&](uintptr_t from, uintptr_t to) {
    update(from, to - from,
           [](Word old, Word mask, uintptr_t) { return old & ~mask; });
  };
  if (inner >= innerEnd)
    return forgetSome(begin, end);
  forgetSome(begin, inner);
  forgetSome(innerEnd, end);
  while (inner < innerEnd) {
    uintptr_t next =
        std::min(innerEnd, ((inner >> kChunkBits) + 1) << kChunkBits);
    if (const Word *word = find(inner)) {
      char *lowest = reinterpret_cast<char *>(const_cast<Word *>(word));
      zero(lowest, lowest + (next - inner) / kWordBytes * sizeof(Word));
    }
    inner = next;
  }
}

void GlobalShadow::copy(uintptr_t to, uintptr_t from, uint64_t bytes) {
  auto getBytes = [&](uintptr_t address) -> uint64_t {
    const Word *word = find(address);
    return word ? __atomic_load_n(word, __ATOMIC_RELAXED) : 0;
  };
  update(to, bytes, [&](Word old, Word mask, uintptr_t address) {
    uintptr_t source = address - to + from;
    uint32_t shift = source % kWordBytes;
    uint64_t known = getBytes(source) | getBytes(source + kWordBytes)
                                            << kWordBytes;
    return (old & ~mask) | (static_cast<Word>(known >> shift) & mask);
  });
}
