# The archives of MLIR's C API depend on the component archives of MLIR. Here they need
# the shared library, except in targets that link the archives themselves.
foreach(target IN LISTS MLIR_EXPORTED_TARGETS)
  if(target MATCHES "^MLIRCAPI")
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES
      "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:KVCACHE_STATIC>>>:MLIR;LLVM>")
  endif()
endforeach()
