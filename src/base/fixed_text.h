// Text in arrays of a fixed size, as it lies in shared memory and in frames: always ended by a zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/printable.h"

namespace tutti {

/// What does not fit is cut off.
template <std::size_t n>
void put_text(std::array<char, n>& to, std::string_view text) {
  to.fill('\0');
  text.copy(to.data(), n - 1);
}

/// Whatever a peer wrote there, it can be shown: a name on one line, or the words of a failure.
template <std::size_t n>
std::string get_text(const std::array<char, n>& from, Lines lines = Lines::one) {
  return printable({from.data(), ::strnlen(from.data(), n)}, n, lines);
}

}  // namespace tutti
