//===- AddressSanitizer.h - Whether it checks this build --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_LIB_RUNTIME_ADDRESSSANITIZER_H
#define KVCACHE_EMULATOR_LIB_RUNTIME_ADDRESSSANITIZER_H

// An older GCC has no __has_feature, and reads no condition with it.
#if defined(__SANITIZE_ADDRESS__)
#define KVCACHE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KVCACHE_ADDRESS_SANITIZER 1
#endif
#endif

#endif // KVCACHE_EMULATOR_LIB_RUNTIME_ADDRESSSANITIZER_H
