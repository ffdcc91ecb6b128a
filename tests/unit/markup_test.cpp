#include "base/markup.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Markup, EscapesWhatXmlWouldRead) {
  EXPECT_EQ(escaped("a<b & \"c\" > d"), "a&lt;b &amp; &quot;c&quot; &gt; d");
  EXPECT_EQ(escaped("GPU \xc2\xb7 \xe2\x86\x92\nline"), "GPU \xc2\xb7 \xe2\x86\x92\nline")
      << "letters beyond ASCII stay";
}

TEST(Markup, ReplacesWhatXmlCannotSay) {
  EXPECT_EQ(escaped(std::string_view("a\x01\x1b[0m\x7f\0z", 9)), "a??[0m??z");
  EXPECT_EQ(escaped("\xff \xe2\x86"), "? ??") << "and what is no UTF-8, or was cut off";
}

}  // namespace
}  // namespace tutti
