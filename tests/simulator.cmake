# Collectives played on machines that are not there: models against closed forms and published figures.
if(NOT TARGET tutti_simulator)
  return()
endif()
foreach(name models)
  tutti_test(simulator_${name}_test SOURCES unit/simulator_${name}_test.cpp LIBS tutti_simulator LABELS unit)
endforeach()
