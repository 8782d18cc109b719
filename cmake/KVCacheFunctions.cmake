# Wrappers that keep the CMakeLists.txt of each folder short.

# kvcache_add_library(NAME SOURCE... [LINK LIB...] [DEPENDS TARGET...])
# Adds a static library that links the shared MLIR. A tool that links MLIR
# statically omits the shared library: see kvcache_link_statically.
function(kvcache_add_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK}
    "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:KVCACHE_STATIC>>>:MLIR;LLVM>")
  kvcache_use_pch(${name})
  kvcache_export(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# kvcache_add_tool(NAME SOURCE... [STATIC] [LINK LIB...])
# Adds a program to build/bin, to wheels, and for other projects. With STATIC, it
# links MLIR statically, except in wheels, which contain the shared MLIR anyway.
function(kvcache_add_tool name)
  cmake_parse_arguments(ARG "STATIC" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  kvcache_export(${name})
  if(NOT ARG_STATIC)
    kvcache_install_on_path(${name})
    return()
  endif()
  kvcache_link_statically(${name})
  add_executable(${name}-in-wheel ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}-in-wheel PRIVATE ${ARG_LINK})
  set_target_properties(${name}-in-wheel PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/wheel")
  kvcache_install_on_path(${name}-in-wheel)
endfunction()

# kvcache_tablegen(FILE.td OUTPUT ARG... ...): runs mlir-tblgen for each output
# file with its arguments, written as "OUTPUT|ARG|ARG".
function(kvcache_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  foreach(pair IN LISTS ARGN)
    string(REPLACE "|" ";" pair "${pair}")
    list(POP_FRONT pair output)
    mlir_tablegen(${output} ${pair})
  endforeach()
  add_public_tablegen_target(${target})
endfunction()

# kvcache_op_tablegen(TARGET FILE): declares and defines the ops of FILE.td. The
# declarations have no comments: a change of a description compiles nothing again.
function(kvcache_op_tablegen target file)
  set(LLVM_TARGET_DEFINITIONS ${file}.td)
  mlir_tablegen(${file}.h.inc.commented -gen-op-decls)
  mlir_tablegen(${file}.cpp.inc -gen-op-defs)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${file}.h.inc")
  add_custom_command(OUTPUT "${output}"
    COMMAND sed "/^ *\\/\\/\\//d" "${output}.commented" > "${output}.new"
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${output}.new" "${output}"
    DEPENDS "${output}.commented"
    VERBATIM)
  list(APPEND TABLEGEN_OUTPUT "${output}")
  add_public_tablegen_target(${target})
endfunction()
