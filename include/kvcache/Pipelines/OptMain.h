//===- OptMain.h - The driver of kvcache-opt -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PIPELINES_OPTMAIN_H
#define KVCACHE_PIPELINES_OPTMAIN_H

namespace mlir::kvcache {

/// The main function of `mlir-opt`, with all dialects and passes, and the
/// options `--emit-ptx`, `--emit-ptx-module` and `--emit-ptx-chip`. Returns the
/// exit status. A program that links MLIR statically must not load plugins,
/// which would bring a second copy of MLIR.
int optMain(int argc, char **argv, bool loadsPlugins);

} // namespace mlir::kvcache

#endif // KVCACHE_PIPELINES_OPTMAIN_H
