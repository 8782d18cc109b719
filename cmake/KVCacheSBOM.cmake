# The software bill of materials of wheels, as CycloneDX: what is compiled into their
# libraries. auditwheel writes another one, of the libraries that it copies.

# kvcache_write_sbom(FILE): writes it. Boost and nanobind have been found.
function(kvcache_write_sbom file)
  set(header "${NB_DIR}/ext/robin_map/include/tsl/robin_growth_policy.h")
  file(STRINGS "${header}" robin_map_version REGEX "define TSL_RH_VERSION_(MAJOR|MINOR|PATCH)")
  list(TRANSFORM robin_map_version REPLACE "[^0-9]" "")
  list(JOIN robin_map_version "." robin_map_version)
  set(llvm_tag "llvmorg-${LLVM_PACKAGE_VERSION}")
  set(boost_tag "boost-${KVCACHE_BOOST_VERSION}")
  set(robin_map_tag "v${robin_map_version}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/sbom.cdx.json.in" "${file}" @ONLY)
endfunction()
