# The machine: recorded ones with known answers, read by tutti-topo.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
# More recorded machines than those in tests/machines, where there are any.
set(TUTTI_RECORDED_MACHINES ${PROJECT_SOURCE_DIR}/../shared/topologies CACHE PATH "Folder of recorded machines; may be missing")
if(TARGET tutti-topo)
  add_test(NAME tutti_topo COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/tutti_topo_test.py
                                   $<TARGET_FILE:tutti-topo> ${TUTTI_RECORDED_MACHINES})
  set_tests_properties(tutti_topo PROPERTIES LABELS unit TIMEOUT 600)
endif()

# A driver of NVIDIA's of which the tests say what it answers, one as old as can be, and one in the system's place.
foreach(fake fake_nvml fake_nvml_old fake_nvml_system)
  add_library(${fake} MODULE support/fake_nvml.cpp)
  target_link_libraries(${fake} PRIVATE tutti_flags)
  target_compile_options(${fake} PRIVATE -fvisibility=default)
  target_include_directories(${fake} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
endforeach()
target_compile_definitions(fake_nvml_old PRIVATE FAKE_NVML_OLD=1)
# Once loaded, it is what others get who load the system's.
target_link_options(fake_nvml_system PRIVATE LINKER:-soname,libnvidia-ml.so.1)

tutti_test(topology_sources_test SOURCES unit/nvml_source_test.cpp unit/sysfs_source_test.cpp LIBS tutti_pictures ${CMAKE_DL_LIBS} LABELS unit)
target_compile_definitions(topology_sources_test PRIVATE TUTTI_FAKE_NVML="$<TARGET_FILE:fake_nvml>"
                                                         TUTTI_FAKE_NVML_OLD="$<TARGET_FILE:fake_nvml_old>")
add_dependencies(topology_sources_test fake_nvml fake_nvml_old)

tutti_test(topology_test SOURCES unit/topology_test.cpp unit/machine_files_test.cpp unit/rings_test.cpp unit/hwloc_synthetic_test.cpp LIBS tutti_pictures pugixml::pugixml LABELS unit)
if(HWLOC_FOUND)
  target_sources(topology_test PRIVATE unit/hwloc_write_test.cpp unit/hwloc_abi_test.cpp)
  target_link_libraries(topology_test PRIVATE PkgConfig::HWLOC)
endif()
target_compile_definitions(topology_test PRIVATE TUTTI_TEST_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/machines")

tutti_test(place_test SOURCES unit/place_test.cpp unit/locations_test.cpp unit/rails_test.cpp unit/thread_cpus_test.cpp unit/cpu_map_test.cpp unit/job_picture_test.cpp ${PROJECT_SOURCE_DIR}/tools/tutti_topo/job_reader.cpp
           LIBS tutti_place tutti_pictures tutti_formats pugixml::pugixml LABELS unit)
target_compile_definitions(place_test PRIVATE TUTTI_TEST_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/machines")

tutti_fuzz(job_map LIBS tutti_place CHANGES 30000)
tutti_test(machine_exchange_test SOURCES unit/machine_exchange_test.cpp unit/map_exchange_test.cpp LIBS tutti_submit LABELS unit)
target_compile_definitions(machine_exchange_test PRIVATE TUTTI_TEST_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/machines")

# Readers that are shown any bytes: changed examples here, and with clang anything (docs/testing.md).
set(topology_rounds_xml 12000)
set(topology_rounds_matrix 5000)
set(topology_rounds_synthetic 1000)
foreach(what xml matrix synthetic)
  tutti_fuzz(topology_${what} LIBS tutti_pictures CHANGES ${topology_rounds_${what}}
             DEFINITIONS TUTTI_TEST_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/machines")
endforeach()
