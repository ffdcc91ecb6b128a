// What others sent is shown as text, whatever it is.
#include "base/printable.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace tutti {
namespace {

TEST(Printable, WhatIsTextStays) {
  for (const char* const text : {"", "node-7", "µs → … 節点 🙂", "C:\\x1b"})
    EXPECT_EQ(printable(text, 100), text);
}

TEST(Printable, WhatIsNoneIsEscaped) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\n\tc\x7f", 100), "a\\x1b[2Jb\\x0d\\x0a\\x09c\\x7f");
  EXPECT_EQ(printable("two\nlines\r", 100, Lines::several), "two\nlines\\x0d");
  EXPECT_EQ(printable(std::string_view("\0", 1), 100), "\\x00");
  // No UTF-8: alone, cut off, spelled too long, half of a pair, beyond the last; and control characters beyond ASCII.
  EXPECT_EQ(printable("\xff\x80 \xe2\x82", 100), "\\xff\\x80 \\xe2\\x82");
  EXPECT_EQ(printable("\xc0\xaf \xe0\x80\xaf", 100), "\\xc0\\xaf \\xe0\\x80\\xaf");
  EXPECT_EQ(printable("\xed\xa0\x80 \xf4\x90\x80\x80", 100), "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xc2\x9b", 100), "\\xc2\\x9b");
  EXPECT_EQ(printable("\u202etxt", 100), "\\xe2\\x80\\xaetxt");
}

TEST(Printable, HasALimitAndSaysSo) {
  EXPECT_EQ(printable("12345", 5), "12345");
  EXPECT_EQ(printable("123456", 5), "12345…");
}

TEST(Printable, SaidAgainItStays) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string once = printable(all, 1000);
  EXPECT_EQ(printable(once, 10'000), once);
}

TEST(Joined, HasTheWordsBetweenItemsAlone) {
  EXPECT_EQ(joined(std::vector<int>{}, ", "), "");
  EXPECT_EQ(joined(std::vector<int>{-7}, ", "), "-7");
  EXPECT_EQ(joined(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
}

TEST(Joined, WritesTextsAsTheyAre) {
  EXPECT_EQ(joined(std::vector<std::string>{"a{}", "", "c"}, " | "), "a{} |  | c");
  EXPECT_EQ(joined(std::vector<std::string_view>{"x", "y"}, ""), "xy");
}

TEST(Joined, TakesPartsOfLists) {
  const std::vector<double> all{0.5, 1, 2.25};
  EXPECT_EQ(joined(std::span(all).first(2), " "), "0.5 1");
}

}  // namespace
}  // namespace tutti
