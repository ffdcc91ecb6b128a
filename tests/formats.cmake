# Plans in other people's words, and the tool that prints, draws, proves and translates them.
if(NOT TARGET tutti_formats)
  return()
endif()
foreach(name msccl mistakes)
  tutti_test(formats_${name}_test SOURCES unit/formats_${name}_test.cpp LIBS tutti_formats LABELS unit)
endforeach()
