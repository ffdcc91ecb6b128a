// A shared library that is loaded if it is installed; tutti does not link it.
#pragma once

#include <initializer_list>
#include <memory>

#include "base/error.h"

namespace tutti {

class Dylib {
 public:
  Dylib() = default;
  /// Loads the first of `names` that can be loaded. Errors: system (the loader's message for the last one).
  static Result<Dylib> open(std::initializer_list<const char*> names);

  /// Whether the library is already loaded into this process.
  static bool is_loaded(const char* name);

  /// Null if the library has no such function. The caller is responsible for the type.
  template <class Function>
  Function* symbol(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }
  /// As above, into a variable; false if the library has no such function.
  template <class Function>
  bool load(Function*& into, const char* name) const {
    into = symbol<Function>(name);
    return into != nullptr;
  }

 private:
  void* find(const char* name) const;
  std::shared_ptr<void> handle_;
};

/// A function of the program or of a library that it has already loaded; null if there is none.
void* find_loaded(const char* name);

}  // namespace tutti
