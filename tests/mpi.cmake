# Programs of MPI, compiled by each MPI's own compiler as their users do, and served by tutti.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

foreach(name ${TUTTI_MPI_FOUND})
  string(TOUPPER ${name} upper)
  set(programs)
  foreach(program same rules between)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/mpi/${program}.c)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/mpi_${program}_${name})
    add_custom_command(OUTPUT ${made} COMMAND ${TUTTI_${upper}_COMPILER} -O1 -Wall -Wno-stringop-overflow ${source} -o ${made}
                       DEPENDS ${source} ${CMAKE_CURRENT_SOURCE_DIR}/mpi/check.h)
    list(APPEND programs ${made})
  endforeach()
  add_custom_target(tutti_mpi_programs_${name} ALL DEPENDS ${programs})
  foreach(part same between progress mixed communicators errors callbacks late off programs)
    add_test(NAME mpi_${part}_${name} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/mpi_test.py ${part} ${name}
                                              ${PROJECT_BINARY_DIR})
    set_tests_properties(mpi_${part}_${name} PROPERTIES LABELS multiprocess TIMEOUT 600 SKIP_RETURN_CODE 77
                                                        ENVIRONMENT TUTTI_TUNE=off)
  endforeach()
  # Also with what is freed poisoned, as packed data and types that the program has freed would be.
  add_test(NAME mpi_same_poisoned_${name} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/mpi_test.py same ${name}
                                                  ${PROJECT_BINARY_DIR})
  set_tests_properties(mpi_same_poisoned_${name} PROPERTIES LABELS multiprocess TIMEOUT 600 SKIP_RETURN_CODE 77
                                                            ENVIRONMENT "TUTTI_TUNE=off;LD_PRELOAD=$<TARGET_FILE:poison>")
  # At night, mpi4py's own tests, where a package index has it.
  foreach(ranks 2 3 4)
    add_test(NAME mpi4py_${name}_${ranks} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/mpi4py_test.py ${name}
                                                  ${ranks} ${PROJECT_BINARY_DIR})
    set_tests_properties(mpi4py_${name}_${ranks} PROPERTIES LABELS nightly TIMEOUT 4000 PROCESSORS 2 SKIP_RETURN_CODE 77
                                                            RESOURCE_LOCK mpi4py_${name} ENVIRONMENT TUTTI_TUNE=off)
  endforeach()
endforeach()

# The comparison with the MPIs underneath: it builds, runs and reads its measurements.
if(TUTTI_MPI_FOUND AND NOT TUTTI_SANITIZE)
  add_test(NAME perf_mpi_interposer COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/perf/compare/compare --mpi-interposer
                                            --tutti $<TARGET_FILE:tutti> --rounds 2 --ms 2 --sizes 8,32K)
  set_tests_properties(perf_mpi_interposer PROPERTIES LABELS multiprocess PROCESSORS 2 TIMEOUT 600 ENVIRONMENT TUTTI_TUNE=off)
endif()
