# Programs of MPI, compiled by each MPI's own compiler as their users do, and served by tutti.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

foreach(name ${TUTTI_MPI_FOUND})
  string(TOUPPER ${name} upper)
  set(programs)
  foreach(program same rules)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/mpi/${program}.c)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/mpi_${program}_${name})
    add_custom_command(OUTPUT ${made} COMMAND ${TUTTI_${upper}_COMPILER} -O1 -Wall -Wno-stringop-overflow ${source} -o ${made}
                       DEPENDS ${source} ${CMAKE_CURRENT_SOURCE_DIR}/mpi/check.h)
    list(APPEND programs ${made})
  endforeach()
  add_custom_target(tutti_mpi_programs_${name} ALL DEPENDS ${programs})
  foreach(part same progress mixed communicators errors callbacks late off programs)
    add_test(NAME mpi_${part}_${name} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/mpi_test.py ${part} ${name}
                                              ${PROJECT_BINARY_DIR})
    set_tests_properties(mpi_${part}_${name} PROPERTIES LABELS multiprocess TIMEOUT 300 SKIP_RETURN_CODE 77
                                                        ENVIRONMENT TUTTI_TUNE=off)
  endforeach()
endforeach()
