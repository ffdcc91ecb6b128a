# How things are compiled: options, warnings, sanitizers, visibility.
option(TUTTI_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TUTTI_BUILD_PERF "Build the perf tests" ${PROJECT_IS_TOP_LEVEL})
option(TUTTI_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(TUTTI_BUILD_TOOLS "Build tutti-plan and tutti-topo" ${PROJECT_IS_TOP_LEVEL})
option(TUTTI_BUILD_FUZZERS "Build the fuzz targets as libFuzzer programs (clang)" OFF)
option(TUTTI_WERROR "Treat warnings as errors; for developers, since the next compiler has new ones" OFF)
option(TUTTI_LTO "Optimize the library across its modules, in release builds" ON)
set(TUTTI_SANITIZE "" CACHE STRING "address;undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Clones and worktrees share what was compiled. Nothing is preprocessed twice where it is not known yet. The last is
  # what ccache asks for where there are precompiled headers.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
               CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# g++ 12 gains nothing from -O3 here: the hot loops are written with vectors.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

# Asserts are cheap outside inner loops and stay on in every build.
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")

add_library(tutti_flags INTERFACE)
target_compile_options(tutti_flags INTERFACE -Wall -Wextra $<$<BOOL:${TUTTI_WERROR}>:-Werror>
                                             "$<$<COMPILE_LANGUAGE:CXX>:-Wshadow;-Wnon-virtual-dtor>"
                                             -ffp-contract=off
                                             # Designated initialisers leave out fields on purpose. g++ 12 is wrong about
                                             # inlined copies, and with little optimization about std::optional; its
                                             # std::stable_sort uses what clang calls deprecated.
                                             -Wno-missing-field-initializers $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
                                             $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Debug>>:-Wno-maybe-uninitialized>
                                             $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>)
target_include_directories(tutti_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
if(TUTTI_BUILD_FUZZERS)
  # Without traced comparisons, which take half of the time here: seeds know the words.
  target_compile_options(tutti_flags INTERFACE -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp)
endif()
if(TUTTI_SANITIZE)
  list(JOIN TUTTI_SANITIZE "," sanitizers)
  list(JOIN TUTTI_SANITIZE "$<COMMA>" all)
  # Undefined behaviour is looked for in the library alone: checked as well, the tests take half as long again to compile.
  string(REPLACE "$<COMMA>undefined" "" of_tests "${all}")
  target_compile_options(tutti_flags INTERFACE -fsanitize=$<IF:$<BOOL:$<TARGET_PROPERTY:IS_TEST>>,${of_tests},${all}>
                                               -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if("undefined" IN_LIST TUTTI_SANITIZE)
    # To look at an object it has not met, the check of dynamic types opens a pipe; where no descriptor is left, which
    # tests see to, it calls every object broken.
    target_compile_options(tutti_flags INTERFACE -fno-sanitize=vptr)
  endif()
  target_link_options(tutti_flags INTERFACE -fsanitize=${sanitizers})
endif()
