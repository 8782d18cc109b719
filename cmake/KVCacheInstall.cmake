# Installs the files for other projects: libraries, headers, .td files, tools, and
# a package for find_package(KVCache), which the build tree has as well.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(KVCACHE_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/kvcache")

# kvcache_export(TARGET...): exports libraries and tools to other projects.
function(kvcache_export)
  foreach(target IN LISTS ARGN)
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL EXECUTABLE)
      target_include_directories(${target} INTERFACE
        "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
        "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>"
        "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    endif()
  endforeach()
  install(TARGETS ${ARGN} EXPORT KVCacheTargets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endfunction()

# kvcache_write_package(FILE PREFIX INCLUDE...): writes a KVCacheConfig.cmake and
# its version file next to the targets.
function(kvcache_write_package folder)
  list(TRANSFORM ARGN REPLACE "(.+)" "\"\\1\"")
  list(JOIN ARGN " " KVCACHE_CONFIG_INCLUDE_DIRS)
  configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/KVCacheConfig.cmake.in"
    "${folder}/KVCacheConfig.cmake"
    INSTALL_DESTINATION "${KVCACHE_PACKAGE_DIR}"
    NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  # Before 1.0, a minor version may break compatibility.
  write_basic_package_version_file(
    "${folder}/KVCacheConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/KVCacheMLIRCAPI.cmake"
    "${folder}/KVCacheMLIRCAPI.cmake" COPYONLY)
endfunction()

# kvcache_install_package(): installs the package; call it after all targets.
function(kvcache_install_package)
  set(include_dirs "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  if(KVCACHE_ENABLE_EMULATOR)
    list(APPEND include_dirs
      "${PROJECT_SOURCE_DIR}/emulator/include" "${PROJECT_BINARY_DIR}/emulator/include")
  endif()
  set(in_build "${PROJECT_BINARY_DIR}/lib/cmake/kvcache")
  kvcache_write_package("${in_build}" ${include_dirs})
  export(EXPORT KVCacheTargets FILE "${in_build}/KVCacheTargets.cmake")

  set(to_install "${PROJECT_BINARY_DIR}/cmake/kvcache")
  kvcache_write_package("${to_install}"
    "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT KVCacheTargets DESTINATION "${KVCACHE_PACKAGE_DIR}")
  install(DIRECTORY "${to_install}/" DESTINATION "${KVCACHE_PACKAGE_DIR}")
  foreach(dir IN LISTS include_dirs)
    install(DIRECTORY "${dir}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
      FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc"
      PATTERN CMakeFiles EXCLUDE)
  endforeach()
endfunction()
