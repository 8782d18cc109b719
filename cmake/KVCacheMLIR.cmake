# Finds MLIR 22.1 and makes sure that only its shared library is ever linked:
# two copies of MLIR in one process have two sets of type ids and fail oddly.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22)  # Debian's place
message(STATUS "MLIR ${MLIR_VERSION} in ${MLIR_DIR}")

if(NOT TARGET MLIR)
  message(FATAL_ERROR
    "This MLIR has no shared library (target 'MLIR'): build LLVM with "
    "-DLLVM_BUILD_LLVM_DYLIB=ON -DMLIR_BUILD_MLIR_DYLIB=ON, or install Debian's libmlir-22-dev.")
endif()

include(KVCacheMLIRCAPI)

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(LLVM_DEFINITIONS_LIST NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${LLVM_DEFINITIONS_LIST})
if(NOT LLVM_ENABLE_RTTI)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
endif()
