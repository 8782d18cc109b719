# Refuses a compiler that names types differently from the one of MLIR. MLIR finds
# traits and interfaces by these names (llvm-project#52621) where symbols are hidden, so a
# library of the other compiler builds, and then its ops have no traits.

if(NOT CMAKE_CROSSCOMPILING)
  set(flags ${LLVM_DEFINITIONS_LIST} -fvisibility=hidden -fvisibility-inlines-hidden)
  if(NOT LLVM_ENABLE_RTTI)
    list(APPEND flags -fno-rtti)
  endif()
  try_run(KVCACHE_TYPE_IDS_DIFFER KVCACHE_TYPE_IDS_COMPILE
    SOURCE_FROM_CONTENT type_ids.cpp [[
#include "mlir/IR/BuiltinOps.h"

int main() {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::OperationName module("builtin.module", &context);
  return !module.hasTrait<mlir::OpTrait::NoTerminator>();
}
]]
    COMPILE_DEFINITIONS ${flags}
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${LLVM_INCLUDE_DIRS};${MLIR_INCLUDE_DIRS}"
    LINK_LIBRARIES MLIR LLVM
    COMPILE_OUTPUT_VARIABLE output
    CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  if(NOT KVCACHE_TYPE_IDS_COMPILE)
    unset(KVCACHE_TYPE_IDS_COMPILE CACHE)
    message(FATAL_ERROR "A program of MLIR does not compile with ${CMAKE_CXX_COMPILER}:\n${output}")
  endif()
  if(NOT KVCACHE_TYPE_IDS_DIFFER EQUAL 0)
    unset(KVCACHE_TYPE_IDS_COMPILE CACHE)
    message(FATAL_ERROR
      "${CMAKE_CXX_COMPILER_ID} names types differently from the compiler that built the MLIR in "
      "${MLIR_DIR}, and MLIR finds traits by these names: use that compiler, with "
      "CC=clang-${LLVM_VERSION_MAJOR} CXX=clang++-${LLVM_VERSION_MAJOR} for Debian's packages.")
  endif()
endif()
