// Whether libhwloc is installed, which synthetic machines need.
#pragma once

#include <dlfcn.h>

namespace tutti::testing {

inline bool has_hwloc() {
  void* const library = dlopen("libhwloc.so.15", RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

}  // namespace tutti::testing
