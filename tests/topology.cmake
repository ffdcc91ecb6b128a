# The machine: recorded ones with known answers, read by tutti-topo.
if(NOT TARGET tutti-topo)
  return()
endif()
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
# More recorded machines than those in tests/machines, where there are any.
set(TUTTI_RECORDED_MACHINES ${PROJECT_SOURCE_DIR}/../shared/topologies CACHE PATH "Folder of recorded machines; may be missing")
add_test(NAME tutti_topo COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/tutti_topo_test.py
                                 $<TARGET_FILE:tutti-topo> ${TUTTI_RECORDED_MACHINES})
set_tests_properties(tutti_topo PROPERTIES LABELS unit TIMEOUT 600)

tutti_test(topology_mutate_test SOURCES fuzz/mutate.cpp fuzz/topology_fuzz.cpp LIBS tutti_topology LABELS unit ARGS 20000)
target_compile_definitions(topology_mutate_test PRIVATE TUTTI_TEST_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/machines")
if(TUTTI_BUILD_FUZZERS)
  add_executable(topology_fuzz fuzz/topology_fuzz.cpp)
  target_link_libraries(topology_fuzz PRIVATE tutti_flags tutti_topology)
  target_include_directories(topology_fuzz PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(topology_fuzz PRIVATE TUTTI_TEST_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/machines")
  target_link_options(topology_fuzz PRIVATE -fsanitize=fuzzer)
endif()
