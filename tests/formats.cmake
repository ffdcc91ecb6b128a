# Plans in other people's words, and the tool that prints, draws, proves and translates them. One thread, no waiting
# (label proof).
foreach(name msccl mistakes)
  tutti_test(formats_${name}_test SOURCES unit/formats_${name}_test.cpp LIBS tutti_written_formats tutti_proof LABELS unit proof)
endforeach()
tutti_test(formats_export_test SOURCES unit/formats_export_test.cpp LIBS tutti_written_formats pugixml::pugixml LABELS unit proof)

foreach(name msccl mscclpp)
  tutti_fuzz(${name} LIBS tutti_written_formats LABELS proof CHANGES 30000)
endforeach()

if(TARGET tutti-plan)
  add_test(NAME tutti_plan COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tutti_plan_test $<TARGET_FILE:tutti-plan>)
  set_tests_properties(tutti_plan PROPERTIES LABELS "unit;proof" TIMEOUT 600)
endif()
