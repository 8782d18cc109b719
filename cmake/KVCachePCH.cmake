# One precompiled header of MLIR for all libraries: nearly all of what a file takes
# to compile is MLIR's headers.
option(KVCACHE_PCH "Compile MLIR's headers once, for all libraries" ON)

# kvcache_use_pch(TARGET): the target's flags must be those of the header, which
# are a library's of this project without definitions or options of its own.
function(kvcache_use_pch target)
  if(KVCACHE_PCH)
    target_precompile_headers(${target} REUSE_FROM KVCachePCH)
  endif()
endfunction()

if(NOT KVCACHE_PCH)
  return()
endif()

file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/pch/empty.cpp" CONTENT "// Holds the precompiled header.\n")
add_library(KVCachePCH STATIC "${CMAKE_BINARY_DIR}/pch/empty.cpp")
set(pch_headers
  <mlir/Conversion/LLVMCommon/Pattern.h>
  <mlir/Dialect/Affine/IR/AffineOps.h>
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/ControlFlow/IR/ControlFlowOps.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/GPU/IR/GPUDialect.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/LLVMIR/NVVMDialect.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/MemRef/IR/MemRef.h>
  <mlir/Dialect/NVGPU/IR/NVGPUDialect.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/UB/IR/UBOps.h>
  <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/Matchers.h>
  <mlir/IR/PatternMatch.h>
  <mlir/Pass/PassManager.h>
  <mlir/Transforms/DialectConversion.h>
  <mlir/Transforms/GreedyPatternRewriteDriver.h>)
target_precompile_headers(KVCachePCH PRIVATE ${pch_headers})

# ccache wants a header without a time stamp: its manual, "Precompiled headers".
# The compiled header has absolute paths, so that each clone's differs. For a
# second clone, ccache reads this checksum of what it is made of instead
# (CCACHE_PCH_EXTSUM).
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(KVCachePCH PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  list(GET MLIR_INCLUDE_DIRS 0 mlir_include_dir)
  file(TIMESTAMP "${mlir_include_dir}/mlir/IR/PatternMatch.h" mlir_date UTC)
  set(pch "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/KVCachePCH.dir/cmake_pch.hxx.pch")
  file(CONFIGURE OUTPUT "${pch}.sum" CONTENT
    "${CMAKE_CXX_COMPILER_VERSION} ${LLVM_PACKAGE_VERSION} ${mlir_date} ${pch_headers}\n")
endif()
