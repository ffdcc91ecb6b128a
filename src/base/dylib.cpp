#include "base/dylib.h"

#include <dlfcn.h>

#include <cstring>

#include "base/descriptors.h"
#include "base/file.h"

namespace tutti {
namespace {

/// A setting may name a file, and the loader would wait for whoever writes to a pipe of that name.
Result<void> refuse_irregular_path(const char* name) {
  return std::strchr(name, '/') == nullptr ? Result<void>() : refuse_irregular(name);
}

}  // namespace

Result<Dylib> Dylib::open(std::initializer_list<const char*> names) {
  Dylib library;
  for (const char* const name : names) TUTTI_TRY(refuse_irregular_path(name));
  const HeldStdio held;  // for what libraries open as they are loaded
  // The library stays loaded after it is closed: its own threads may still run.
  for (const char* const name : names) {
    library.handle_ = std::shared_ptr<void>(::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), [](void* handle) {
      if (handle != nullptr) ::dlclose(handle);
    });
    if (library.handle_) return library;
  }
  const char* const why = ::dlerror();
  return Error{.code = Code::system, .what = why == nullptr ? "no such library" : why};
}

bool Dylib::is_loaded(const char* name) {
  if (!refuse_irregular_path(name)) return false;
  void* const handle = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  ::dlclose(handle);
  return true;
}

void* Dylib::find(const char* name) const {
  return handle_ ? ::dlsym(handle_.get(), name) : nullptr;
}

void* find_loaded(const char* name) {
  return ::dlsym(RTLD_DEFAULT, name);
}

}  // namespace tutti
