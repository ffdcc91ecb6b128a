// An error says what failed and where; a result is one or the other.
#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace tutti {
namespace {

TEST(Error, EachLayerAddsOnlyWhatIsMissing) {
  Error error = Error{.code = Code::timeout, .what = "no slot freed"}.at_peer(5).at_step(1, 12);
  EXPECT_EQ(error.text(), "timeout: no slot freed [peer 5] [channel 1, step 12]");
  error = std::move(error).at_peer(7).at_step(3, 4);
  EXPECT_EQ(error.peer, 5);
  EXPECT_EQ(error.channel, 1);
  EXPECT_EQ(error.step, 12);
}

TEST(Error, SaysWhatTheSystemSaid) {
  const std::string text = Error{.code = Code::system, .what = "open x", .sys_errno = ENOENT}.during("start").text();
  EXPECT_EQ(text, "system error: start: open x: No such file or directory (errno 2)");
}

TEST(Error, SaysWhatToRaise) {
  const auto of = [](int number) { return Error{.code = Code::system, .what = "open x", .sys_errno = number}; };
  EXPECT_EQ(of(EMFILE).words(), "open x: Too many open files (errno 24): raise ulimit -n");
  EXPECT_NE(of(ENFILE).text().find(": raise fs.file-max"), std::string::npos);
  EXPECT_TRUE(of(EMFILE).lacks_descriptor() && of(ENFILE).lacks_descriptor());
  EXPECT_FALSE(of(ENOMEM).lacks_descriptor());
}

TEST(Error, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(Code::timeout); ++code)
    EXPECT_NE(name(static_cast<Code>(code)), "unknown error");
  EXPECT_EQ(name(static_cast<Code>(99)), "unknown error");
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<std::string> value = std::string("x");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, "x");
  EXPECT_EQ(value->size(), 1u);
  const Result<std::string> none = Error{.code = Code::remote, .what = "gone"};
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::remote);
  EXPECT_TRUE(Result<void>());
  EXPECT_FALSE(Result<void>(Error{}));
}

/// A program that is told "in progress" would wait for ever.
TEST(Code, ThatAPeerToldIsThatOfAnError) {
  for (const std::uint32_t number : {1u, 2u, 3u, 4u, 5u, 6u, 8u})
    EXPECT_EQ(received_code(number), static_cast<Code>(number));
  for (const std::uint32_t number : {0u, 7u, 9u, 0xffff'ffffu}) EXPECT_EQ(received_code(number), Code::remote);
}

}  // namespace
}  // namespace tutti
