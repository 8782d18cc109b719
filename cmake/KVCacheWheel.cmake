# The install components of wheels: the files other than Python files. The prefix is the
# folder of the wheel that becomes site-packages; the sibling folder has the programs
# that go on PATH.
#
#   cmake --install build --component wheel --prefix PLATLIB
#
#   wheel          libraries that compiled code needs, and generated Python files
#   wheel-linked   the extension with the shared MLIR, and tools
#   wheel-small    the extension with MLIR in itself
#   wheel-stable   the same, for the stable ABI of Python

# kvcache_install_in_package(TARGET... [COMPONENT NAME]): installs libraries next to
# Python files. Targets that are not part of "all" may be absent.
function(kvcache_install_in_package)
  cmake_parse_arguments(ARG "" "COMPONENT" "" ${ARGN})
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT wheel)
  endif()
  install(TARGETS ${ARG_UNPARSED_ARGUMENTS} LIBRARY DESTINATION kvcache
    COMPONENT ${ARG_COMPONENT} EXCLUDE_FROM_ALL OPTIONAL)
endfunction()

# kvcache_install_on_path(TARGET...): installs programs.
function(kvcache_install_on_path)
  install(TARGETS ${ARGN} RUNTIME DESTINATION ../scripts
    COMPONENT wheel-linked EXCLUDE_FROM_ALL)
endfunction()
