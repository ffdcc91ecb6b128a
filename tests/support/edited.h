// A text with one thing changed, to see what is said of it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tutti::testing {

/// `text` with the first `from` replaced; the test fails if there is none.
inline std::string edited(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "nothing to edit: " << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

/// One mistake, and what must be said of it.
struct Mistake {
  std::string_view from;
  std::string_view to;
  std::string_view place;
  std::string_view reason;
};

}  // namespace tutti::testing
