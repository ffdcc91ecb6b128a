# Plans in other people's words, and the tool that prints, draws, proves and translates them. One thread, no waiting
# (label proof).
if(NOT TARGET tutti_formats)
  return()
endif()
foreach(name msccl mistakes)
  tutti_test(formats_${name}_test SOURCES unit/formats_${name}_test.cpp LIBS tutti_formats LABELS unit proof)
endforeach()
tutti_test(formats_export_test SOURCES unit/formats_export_test.cpp LIBS tutti_formats pugixml::pugixml LABELS unit proof)

# Each target is a test of its own, with changes made from a seed; libFuzzer goes on from there.
foreach(name msccl mscclpp)
  tutti_test(${name}_mutate_test SOURCES fuzz/mutate.cpp fuzz/${name}_fuzz.cpp LIBS tutti_formats LABELS unit proof
             ARGS 30000)
  if(TUTTI_BUILD_FUZZERS)
    add_executable(${name}_fuzz fuzz/${name}_fuzz.cpp)
    target_link_libraries(${name}_fuzz PRIVATE tutti_flags tutti_formats)
    target_include_directories(${name}_fuzz PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  endif()
endforeach()

add_test(NAME tutti_plan COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tutti_plan_test $<TARGET_FILE:tutti-plan>)
set_tests_properties(tutti_plan PROPERTIES LABELS "unit;proof" TIMEOUT 300)
