# Collectives played on machines that are not there: models against closed forms and published figures.
foreach(name machines models networks patterns published)
  tutti_test(simulator_${name}_test SOURCES unit/simulator_${name}_test.cpp LIBS tutti_simulator LABELS unit)
endforeach()
set_tests_properties(simulator_networks_test PROPERTIES ENVIRONMENT GTEST_FILTER=-*Nightly*)
add_test(NAME simulator_networks_nightly COMMAND simulator_networks_test --gtest_filter=*Nightly*)
set_tests_properties(simulator_networks_nightly PROPERTIES LABELS nightly TIMEOUT 1200)
