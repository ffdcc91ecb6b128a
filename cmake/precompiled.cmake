# Headers that nearly all sources include, parsed once: a third of the time of a build. For its speed alone: each source
# still includes what it uses, which a build without them (AddressSanitizer's) proves.
option(TUTTI_PRECOMPILE "Parse common headers once" ON)

# tutti_precompile(NAME SOURCE HEADERS...): keeps the headers, compiled as those of the library, for
# tutti_take_precompiled. An empty SOURCE is needed, as CMake makes them for a target.
function(tutti_precompile NAME SOURCE)
  if(NOT TUTTI_PRECOMPILE)
    return()
  endif()
  add_library(${NAME} OBJECT ${SOURCE})
  target_link_libraries(${NAME} PRIVATE tutti_flags fmt::fmt)
  target_precompile_headers(${NAME} PRIVATE ${ARGN})
  target_compile_options(${NAME} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
endfunction()

function(tutti_take_precompiled TARGET NAME)
  if(TARGET ${NAME})
    target_precompile_headers(${TARGET} REUSE_FROM ${NAME})
    target_compile_options(${TARGET} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
endfunction()
