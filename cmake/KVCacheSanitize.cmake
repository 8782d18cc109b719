# The preset "sanitize": AddressSanitizer and UndefinedBehaviorSanitizer report
# undefined behaviour in this project's code. LLVM and MLIR are linked without
# them.
option(KVCACHE_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
if(NOT KVCACHE_SANITIZE)
  return()
endif()

execute_process(
  COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
  OUTPUT_VARIABLE KVCACHE_ASAN_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS "${KVCACHE_ASAN_RUNTIME}")
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER} has no shared runtime of AddressSanitizer: "
    "Debian has it in libclang-rt-22-dev.")
endif()
cmake_path(GET KVCACHE_ASAN_RUNTIME PARENT_PATH asan_folder)

# Without run-time type information there are no dynamic types to compare.
set(sanitizers -fsanitize=address,undefined -fno-sanitize=vptr,function)
add_compile_options(${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
# The emulator leaves stacks without unwinding them.
add_compile_options(-fsanitize-address-use-after-return=never)
# Memory that LLVM's allocators poison here, LLVM's own library, which has no
# sanitizer in it, would hand out as it is.
add_compile_definitions(__asan_poison_memory_region=__asan_unpoison_memory_region)
add_compile_definitions(_GLIBCXX_ASSERTIONS)
# One runtime for programs and for the libraries that Python and plugins' hosts load.
add_link_options(${sanitizers} -shared-libasan "LINKER:-rpath,${asan_folder}")

# The preset "fuzz": libFuzzer sees which of this project's code an input reaches.
option(KVCACHE_FUZZ "Build the inputs of libFuzzer in test/fuzz/inputs" OFF)
if(KVCACHE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
