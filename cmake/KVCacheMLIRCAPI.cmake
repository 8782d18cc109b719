# The archives of MLIR's C API depend on the component archives of MLIR.
foreach(target IN LISTS MLIR_EXPORTED_TARGETS)
  if(target MATCHES "^MLIRCAPI")
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "MLIR;LLVM")
  endif()
endforeach()
