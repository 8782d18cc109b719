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
// Words
//===----------------------------------------------------------------------===//

GlobalShadow::Word GlobalShadow::stamp(Word old, Word bytes, Writer writer,
                                       uint32_t launch) {
  if (writer == Writer::Host)
    return old | bytes;
  Word number = launch << kLaunchShift;
  Word initialized = (old & kByteMask) | bytes;
  Word written = bytes << kWrittenShift;
  bool byCopy = writer == Writer::Copy;
  if ((old >> kLaunchShift) == (number >> kLaunchShift)) {
    written |= old & (kByteMask << kWrittenShift);
    byCopy |= (old & kByCopy) != 0;
  }
  return number | (byCopy ? kByCopy : 0) | written | initialized;
}

GlobalShadow::Word GlobalShadow::getWritten(Word word, uint32_t launch,
                                            bool byKernel) {
  bool isOld = ((word >> kLaunchShift) << kLaunchShift) !=
               (Word{launch} << kLaunchShift);
  if (isOld || (byKernel && (word & kByCopy)))
    return 0;
  return (word >> kWrittenShift) & kByteMask;
}

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
                     static_cast<Word *>(reserve(size_t{1} << kChunkBits)),
                     __ATOMIC_RELEASE);
  return chunks[number];
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Calls `visit` with the address of each word and the mask of its bytes until
/// it returns false.
template <typename Visitor>
static void forEachWord(uintptr_t begin, uint64_t bytes, Visitor visit) {
  for (uintptr_t end = begin + bytes; begin < end;) {
    uintptr_t word = begin & ~uintptr_t{3};
    uint32_t first = begin - word, last = std::min<uintptr_t>(end - word, 4);
    if (!visit(word, (1u << last) - (1u << first)))
      return;
    begin = word + 4;
  }
}

/// Neighbours of 4 bytes may be written by other threads.
template <typename Update>
void GlobalShadow::update(uintptr_t begin, uint64_t bytes, Update update) {
  forEachWord(begin, bytes, [&](uintptr_t address, Word mask) {
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

/// Calls `visit` with the words of each part of a range that is in one chunk,
/// and the address that they begin with, until it returns false. Words are null
/// where nobody has written.
template <typename Visitor>
void GlobalShadow::forEachPart(uintptr_t begin, uintptr_t end,
                               Visitor visit) const {
  for (begin &= ~uintptr_t{kWordBytes - 1}; begin < end;) {
    uintptr_t next = std::min(end, ((begin >> kChunkBits) + 1) << kChunkBits);
    if (!visit(find(begin), begin, next))
      return;
    begin = next;
  }
}

/// The first byte for which `select` sets a bit, given the word of 4.
template <typename Select>
uintptr_t GlobalShadow::findFirst(uintptr_t begin, uint64_t bytes,
                                  Select select) const {
  uintptr_t end = begin + bytes, found = end;
  forEachPart(
      begin, end, [&](const Word *words, uintptr_t address, uintptr_t partEnd) {
        for (; address < partEnd; address += kWordBytes) {
          Word value = words ? __atomic_load_n(words++, __ATOMIC_RELAXED) : 0;
          Word wrong = select(value);
          if (!wrong)
            continue;
          if (address < begin)
            wrong &= kByteMask << (begin - address);
          if (end - address < kWordBytes)
            wrong &= (1u << (end - address)) - 1;
          if (!wrong)
            continue;
          found = address + __builtin_ctz(wrong);
          return false;
        }
        return true;
      });
  return found;
}

/// Who writes all bytes of a word needs not look at what was there.
void GlobalShadow::fill(uintptr_t begin, uintptr_t end, Word value) {
  using Pair [[gnu::may_alias]] = uint64_t;
  const Pair pair = value | (Pair{value} << 32);
  while (begin < end) {
    Word *words = get(begin);
    if (!words)
      return;
    uintptr_t next = std::min(end, ((begin >> kChunkBits) + 1) << kChunkBits);
    if (begin % sizeof(Pair)) {
      __atomic_store_n(words++, value, __ATOMIC_RELAXED);
      begin += kWordBytes;
    }
    for (; begin + sizeof(Pair) <= next; begin += sizeof(Pair), words += 2)
      __atomic_store_n(reinterpret_cast<Pair *>(words), pair, __ATOMIC_RELAXED);
    if (begin < next)
      __atomic_store_n(words, value, __ATOMIC_RELAXED);
    begin = next;
  }
}

void GlobalShadow::write(uintptr_t begin, uint64_t bytes, Writer writer,
                         uint32_t launch) {
  auto stampSome = [=](uintptr_t from, uintptr_t to) {
    update(from, to - from, [=](Word old, Word mask, uintptr_t) {
      return stamp(old, mask, writer, launch);
    });
  };
  uintptr_t end = begin + bytes;
  uintptr_t inner = (begin + kWordBytes - 1) & ~uintptr_t{kWordBytes - 1};
  uintptr_t innerEnd = end & ~uintptr_t{kWordBytes - 1};
  if (writer == Writer::Host || inner >= innerEnd)
    return stampSome(begin, end);
  if (begin < inner)
    stampSome(begin, inner);
  fill(inner, innerEnd, stamp(0, kByteMask, writer, launch));
  if (innerEnd < end)
    stampSome(innerEnd, end);
}

uintptr_t GlobalShadow::findMissing(uintptr_t begin, uint64_t bytes) const {
  return findFirst(begin, bytes, [](Word word) { return ~word & kByteMask; });
}

uintptr_t GlobalShadow::findWritten(uintptr_t begin, uint64_t bytes,
                                    uint32_t launch, bool byKernel) const {
  return findFirst(begin, bytes, [=](Word word) {
    return getWritten(word, launch, byKernel);
  });
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
  uintptr_t end = (begin + bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
  while (begin < end) {
    uintptr_t next = std::min(end, ((begin >> kChunkBits) + 1) << kChunkBits);
    if (const Word *word = find(begin)) {
      char *lowest = reinterpret_cast<char *>(const_cast<Word *>(word));
      zero(lowest, lowest + (next - begin));
    }
    begin = next;
  }
}

void GlobalShadow::copy(uintptr_t to, uintptr_t from, uint64_t bytes) {
  auto getBytes = [&](uintptr_t address) {
    const Word *word = find(address);
    return word ? __atomic_load_n(word, __ATOMIC_RELAXED) & kByteMask : 0;
  };
  update(to, bytes, [&](Word old, Word mask, uintptr_t address) {
    uintptr_t source = address - to + from;
    uint32_t shift = source % kWordBytes;
    Word known = getBytes(source) >> shift;
    if (shift)
      known |= getBytes(source + kWordBytes) << (kWordBytes - shift);
    return (old & ~mask) | (known & mask);
  });
}
