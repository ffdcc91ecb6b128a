# The house: what the compiler does not check, what the libraries show, whether a stranger can link to them.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

add_test(NAME tidy COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/tidy.py)
add_test(NAME tidy_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/tidy_test.py)
add_test(NAME symbols_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/symbols_test.py)
set_tests_properties(symbols_test PROPERTIES ENVIRONMENT CXX=${CMAKE_CXX_COMPILER})
add_test(NAME release_version COMMAND ${PROJECT_SOURCE_DIR}/tools/release --check)
add_test(NAME source_digest_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/source_digest_test.py ${CMAKE_COMMAND})
add_test(NAME promises_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/promises_test.py ${PROJECT_SOURCE_DIR})
add_test(NAME faults_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/faults_test.py ${PROJECT_SOURCE_DIR})
set_tests_properties(tidy tidy_test symbols_test release_version source_digest_test promises_test faults_test PROPERTIES LABELS house TIMEOUT 600)
add_test(NAME whole_library_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/whole_library_test.py
                                         ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
set_tests_properties(whole_library_test PROPERTIES LABELS house TIMEOUT 600)
add_test(NAME whole_library_knows_machines COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/whole_library_test.py
                                                   ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} --build)
set_tests_properties(whole_library_knows_machines PROPERTIES LABELS nightly TIMEOUT 18000)
add_test(NAME checklists COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/checklists/run.py ${PROJECT_SOURCE_DIR})
set_tests_properties(checklists PROPERTIES LABELS nightly TIMEOUT 18000 ENVIRONMENT "CC=${CMAKE_C_COMPILER};CXX=${CMAKE_CXX_COMPILER}")
add_test(NAME compilers COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/compilers/run)
set_tests_properties(compilers PROPERTIES LABELS nightly TIMEOUT 18000)
add_test(NAME plot_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/plot_test.py)
set_tests_properties(plot_test PROPERTIES LABELS house TIMEOUT 600 SKIP_RETURN_CODE 77)

# A sanitizer adds symbols and state of its own, so these ask plain builds only.
if(NOT TUTTI_SANITIZE)
  set(archives)
  foreach(module base plan algorithms choice transport exec kernels cuda tune net launch bootstrap process call comm progress
                 collective gpu init submit formats topology_graph topology_sources topology_search
                 written_formats simulator pictures)
    list(APPEND archives $<TARGET_FILE:tutti_${module}>)
  endforeach()
  add_test(NAME exports COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/symbols.py exports
                                $<TARGET_FILE:tutti> ${PROJECT_SOURCE_DIR}/include/tutti)
  add_test(NAME state COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/symbols.py state
                              ${PROJECT_SOURCE_DIR}/src ${archives} $<TARGET_OBJECTS:tutti>
           COMMAND_EXPAND_LISTS)
  set_tests_properties(exports state PROPERTIES LABELS house TIMEOUT 600)

  add_test(NAME install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install/run ${PROJECT_BINARY_DIR})
  set_tests_properties(install PROPERTIES LABELS install TIMEOUT 600)
endif()

# Every header compiles alone, the public one also as C99: one source per header, on demand (target tutti_headers).
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
     ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/src/*.h ${PROJECT_SOURCE_DIR}/analysis/*.h
     ${PROJECT_SOURCE_DIR}/kernels/*.h)
list(FILTER headers EXCLUDE REGEX "-inl\\.h$")  # these are parts of one source, read once per instruction set
list(FILTER headers EXCLUDE REGEX "^adapters/mpi/")  # these need an mpi.h
set(alone)
foreach(header ${headers})
  string(MAKE_C_IDENTIFIER ${header} name)
  file(CONFIGURE OUTPUT headers/${name}.cpp CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  list(APPEND alone ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp)
endforeach()
file(CONFIGURE OUTPUT headers/public.c CONTENT "#include \"include/tutti/tutti.h\"\n")
add_library(tutti_headers OBJECT EXCLUDE_FROM_ALL ${alone} headers/public.c)
set_source_files_properties(headers/public.c PROPERTIES COMPILE_OPTIONS -pedantic)
target_link_libraries(tutti_headers PRIVATE tutti_base PkgConfig::HWY)
add_test(NAME headers COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target tutti_headers)
set_tests_properties(headers PROPERTIES LABELS slow TIMEOUT 600)
