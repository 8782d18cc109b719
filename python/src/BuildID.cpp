//===- BuildID.cpp - The identifier of this build -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BuildID.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <elf.h>
#include <link.h>

using namespace mlir::kvcache;

/// Reads the notes of a segment, which have a header, a name and a description,
/// each padded to four bytes.
static llvm::StringRef findBuildID(llvm::StringRef notes) {
  ElfW(Nhdr) header;
  while (notes.size() >= sizeof(header)) {
    std::memcpy(&header, notes.data(), sizeof(header));
    size_t description = sizeof(header) + llvm::alignTo<4>(header.n_namesz);
    bool isBuildID = header.n_type == NT_GNU_BUILD_ID &&
                     notes.substr(sizeof(header), header.n_namesz) ==
                         llvm::StringRef("GNU", sizeof("GNU"));
    if (isBuildID)
      return notes.substr(description, header.n_descsz);
    notes = notes.substr(description + llvm::alignTo<4>(header.n_descsz));
  }
  return {};
}

/// Visits a loaded object; ends the search at the one that has this function.
static int visitObject(dl_phdr_info *object, size_t, void *result) {
  llvm::ArrayRef segments(object->dlpi_phdr, object->dlpi_phnum);
  auto address = reinterpret_cast<uintptr_t>(&visitObject);
  bool isOurs = llvm::any_of(segments, [&](const ElfW(Phdr) & segment) {
    uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    return segment.p_type == PT_LOAD && address - start < segment.p_memsz;
  });
  if (!isOurs)
    return 0;
  auto &id = *static_cast<llvm::StringRef *>(result);
  for (const ElfW(Phdr) &segment : segments) {
    uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    llvm::StringRef bytes(reinterpret_cast<const char *>(start),
                          segment.p_memsz);
    if (segment.p_type == PT_NOTE && id.empty())
      id = findBuildID(bytes);
  }
  return 1;
}

llvm::StringRef python::getBuildID() {
  llvm::StringRef id;
  dl_iterate_phdr(&visitObject, &id);
  return id;
}
