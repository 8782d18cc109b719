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

# kvcache_link_statically(TOOL): links MLIR and LLVM statically. The program starts
# in a third of the time, has 170 MB when stripped, and cannot load plugins.
function(kvcache_link_statically tool)
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
    message(STATUS "${tool} links to the shared MLIR: there are no archives of it")
    return()
  endif()
  list(JOIN archives "," archives)
  get_target_property(system_libs LLVMSupport INTERFACE_LINK_LIBRARIES)
  set_target_properties(${tool} PROPERTIES KVCACHE_STATIC ON)
  target_compile_definitions(${tool} PRIVATE KVCACHE_STATIC)
  target_link_libraries(${tool} PRIVATE "$<LINK_GROUP:RESCAN,${archives}>" ${system_libs})
  target_link_options(${tool} PRIVATE -no-pie LINKER:--gc-sections)
endfunction()
