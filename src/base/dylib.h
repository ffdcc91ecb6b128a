// A shared library that is used where it is installed, and not linked.
#pragma once

#include <initializer_list>
#include <memory>

#include "base/error.h"

namespace tutti {

class Dylib {
 public:
  Dylib() = default;
  /// The first of `names` that can be loaded.
  /// Errors: system (the loader's words for the last one).
  static Result<Dylib> open(std::initializer_list<const char*> names);

  /// Whether somebody has loaded the library into this process already.
  static bool is_loaded(const char* name);

  /// Null where the library has none of this name. The caller vouches for the type.
  template <class Function>
  Function* symbol(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }

 private:
  void* find(const char* name) const;
  std::shared_ptr<void> handle_;
};

/// A function of the program, or of a library that it has loaded already; null where there is none.
void* find_loaded(const char* name);

}  // namespace tutti
