# MLIR's C API comes in archives that would bring the component archives along.
foreach(target IN LISTS MLIR_EXPORTED_TARGETS)
  if(target MATCHES "^MLIRCAPI")
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "MLIR;LLVM")
  endif()
endforeach()
