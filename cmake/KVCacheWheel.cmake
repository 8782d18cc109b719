# What a wheel of the Python package holds beside its Python files: the install
# component "wheel". Its prefix is the folder of the wheel that becomes
# site-packages; beside it is the one whose programs come onto PATH.
#
#   cmake --install build --component wheel --prefix PLATLIB

# kvcache_install_in_package(TARGET...): libraries beside the Python files.
function(kvcache_install_in_package)
  install(TARGETS ${ARGN} LIBRARY DESTINATION kvcache
    COMPONENT wheel EXCLUDE_FROM_ALL)
endfunction()

# kvcache_install_on_path(TARGET...): programs.
function(kvcache_install_on_path)
  install(TARGETS ${ARGN} RUNTIME DESTINATION ../scripts
    COMPONENT wheel EXCLUDE_FROM_ALL)
endfunction()
