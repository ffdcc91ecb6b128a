# Run as a script: writes OUTPUT, a source file with a digest of the C++ files named in the file LIST, one a line. Comments
# and indentation do not count, and paths count as they are below ROOT, so equal sources have equal digests everywhere.
#   cmake -DROOT=... -DLIST=... -DOUTPUT=... -P source_digest.cmake
file(STRINGS ${LIST} files)
set(text "")
foreach(file IN LISTS files)
  file(READ ${file} content)
  string(REGEX REPLACE "[ \t]*//[^\n]*" "" content "${content}")
  string(REGEX REPLACE "\n[ \t\n]*" "\n" content "${content}")
  file(RELATIVE_PATH name ${ROOT} ${file})
  string(SHA256 digest "${content}")
  string(APPEND text "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${text}")
string(SUBSTRING ${digest} 0 16 digest)
set(source "// Made by cmake/source_digest.cmake.
#include \"init/source_digest.h\"

namespace tutti {

const std::uint64_t source_digest = 0x${digest};

}  // namespace tutti
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL source)
  file(WRITE ${OUTPUT} "${source}")
endif()
