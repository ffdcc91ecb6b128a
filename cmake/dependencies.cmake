find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(pugixml CONFIG REQUIRED)        # machines travel as XML
find_package(nlohmann_json CONFIG REQUIRED)  # plans and jobs
if(TUTTI_BUILD_TESTS)
  find_package(GTest REQUIRED)
  pkg_check_modules(HWLOC QUIET IMPORTED_TARGET hwloc)  # whose header ours is compared with
endif()
if(TUTTI_BUILD_PERF OR TUTTI_BUILD_TOOLS)
  find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
endif()
