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
