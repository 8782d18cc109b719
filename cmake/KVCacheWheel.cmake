# The install component "wheel": the files of a wheel other than Python files. Its
# prefix is the folder of the wheel that becomes site-packages; the sibling folder
# has the programs that go on PATH.
#
#   cmake --install build --component wheel --prefix PLATLIB

# kvcache_install_in_package(TARGET...): installs libraries next to Python files.
function(kvcache_install_in_package)
  install(TARGETS ${ARGN} LIBRARY DESTINATION kvcache
    COMPONENT wheel EXCLUDE_FROM_ALL)
endfunction()

# kvcache_install_on_path(TARGET...): installs programs.
function(kvcache_install_on_path)
  install(TARGETS ${ARGN} RUNTIME DESTINATION ../scripts
    COMPONENT wheel EXCLUDE_FROM_ALL)
endfunction()
