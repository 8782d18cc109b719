# Finds MLIR 22.1, and makes libraries link only to its shared library. Two copies
# of MLIR in one process have two sets of type ids, which causes obscure errors.
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
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT LLVM_ENABLE_ASSERTIONS)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${CMAKE_CURRENT_LIST_DIR}/LLVMStatistic.h>")
endif()
include(KVCacheTypeIDs)

# kvcache_add_missing_targets(): a library with functions that do nothing in place of
# those that initialize targets. Archives need targets only for the host and for GPUs of
# NVIDIA, and a pass of MLIR initializes all, which would link their code.
function(kvcache_add_missing_targets)
  if(TARGET KVCacheMissingTargets)
    return()
  endif()
  set(targets ${LLVM_TARGETS_TO_BUILD})
  list(REMOVE_ITEM targets NVPTX ${LLVM_NATIVE_ARCH})
  set(text "/* Targets of LLVM that are not linked. */\n")
  foreach(target IN LISTS targets)
    foreach(part IN ITEMS TargetInfo Target TargetMC AsmPrinter AsmParser Disassembler)
      string(APPEND text "void LLVMInitialize${target}${part}(void) {}\n")
    endforeach()
  endforeach()
  set(file "${CMAKE_BINARY_DIR}/static/missing-targets.c")
  file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
  add_library(KVCacheMissingTargets OBJECT EXCLUDE_FROM_ALL "${file}")
endfunction()

# kvcache_find_archives(VARIABLE): the archives of MLIR and LLVM with their system
# libraries, for one link; empty if there are none.
function(kvcache_find_archives variable)
  # Link the archives directly, because MLIR's targets prefer a shared LLVM.
  get_property(mlir GLOBAL PROPERTY MLIR_ALL_LIBS)
  set(archives)
  foreach(library IN LISTS mlir LLVM_AVAILABLE_LIBS)
    if(TARGET ${library})
      get_target_property(file ${library} LOCATION)
      if(file MATCHES "${CMAKE_STATIC_LIBRARY_SUFFIX}$" AND EXISTS "${file}")
        list(APPEND archives "${file}")
      endif()
    endif()
  endforeach()
  if(NOT archives MATCHES "MLIRIR.*LLVMCore")
    set(${variable} "" PARENT_SCOPE)
    return()
  endif()
  list(JOIN archives "," archives)
  get_target_property(system_libs LLVMSupport INTERFACE_LINK_LIBRARIES)
  set(${variable} "$<LINK_GROUP:RESCAN,${archives}>" ${system_libs} PARENT_SCOPE)
endfunction()

# kvcache_link_statically(TARGET): links MLIR and LLVM statically into a program,
# which then starts in a third of the time and cannot load plugins, or into a module.
function(kvcache_link_statically target)
  kvcache_find_archives(archives)
  if(NOT archives)
    message(STATUS "${target} links to the shared MLIR: there are no archives of it")
    return()
  endif()
  kvcache_add_missing_targets()
  set_target_properties(${target} PROPERTIES KVCACHE_STATIC ON)
  target_link_libraries(${target} PRIVATE KVCacheMissingTargets ${archives})
  target_link_options(${target} PRIVATE LINKER:--gc-sections LINKER:--as-needed)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    target_compile_definitions(${target} PRIVATE KVCACHE_STATIC)
    target_link_options(${target} PRIVATE -no-pie)
  endif()
endfunction()
