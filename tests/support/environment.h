// How much a test does, where builds are slow or a night is long.
#pragma once

#include <cstdlib>

namespace tutti::testing {

/// The variable's number, or what is usual.
inline int environment(const char* variable, int usual) {
  const char* const text = std::getenv(variable);
  return text ? std::atoi(text) : usual;
}

}  // namespace tutti::testing
