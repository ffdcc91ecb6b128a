// Text in arrays of fixed size, as used in shared memory and frames: always ends with a zero byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/printable.h"

namespace tutti {

/// Text that does not fit is truncated.
template <std::size_t n>
void put_text(std::array<char, n>& to, std::string_view text) {
  to.fill('\0');
  text.copy(to.data(), n - 1);
}

/// Makes any content that a peer wrote there fit to show: a name on one line, or the text of a failure.
template <std::size_t n>
std::string get_text(const std::array<char, n>& from, Lines lines = Lines::one) {
  return printable({from.data(), ::strnlen(from.data(), n)}, n, lines);
}

}  // namespace tutti
