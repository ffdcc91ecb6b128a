// The id through a key-value space: rank 0's word reaches the others, whatever it is.
#include <gtest/gtest.h>

#include <map>

#include "init/meeting.h"

namespace tutti {
namespace {

/// A space in which every fence is complete: ranks come one after the other, rank 0 first.
class Shelf final : public KeyValueSpace {
 public:
  explicit Shelf(std::map<std::string, std::string>& values) : values_(values) {}
  const char* name() const override { return "a shelf"; }
  Result<void> put(const std::string& key, const std::string& value, std::int64_t) override {
    for (const char c : key + value) EXPECT_TRUE(c > ' ' && c < 0x7f && c != '=' && c != ';') << key << " " << value;
    EXPECT_LT(key.size(), 64u);
    EXPECT_LE(value.size(), 1000u);
    values_[key] = value;
    return {};
  }
  Result<void> fence(std::int64_t) override { return {}; }
  Result<std::string> get(int rank, const std::string& key, std::int64_t) override {
    EXPECT_EQ(rank, 0);
    return values_[key];
  }

 private:
  std::map<std::string, std::string>& values_;
};

UniqueId sample(int number) {
  UniqueId id{.root = {.host = "fd00::" + std::to_string(number), .port = 4711}};
  id.secret.fill(static_cast<std::byte>(number));
  return id;
}

TEST(MeetInSpace, EveryRankGetsTheIdOfEachTime) {
  std::map<std::string, std::string> values;
  Shelf space(values);
  for (int rank = 0; rank < 3; ++rank)
    for (int nth = 0; nth < 2; ++nth) {
      auto id = meet_in_space(space, rank, nth, 0, [&]() -> Result<UniqueId> {
        EXPECT_EQ(rank, 0) << "only rank 0 makes one";
        return sample(nth + 1);
      });
      ASSERT_TRUE(id) << id.error().text();
      EXPECT_EQ(id->encode(), sample(nth + 1).encode());
    }
}

TEST(MeetInSpace, TheOthersHearWhyThereIsNone) {
  std::map<std::string, std::string> values;
  Shelf space(values);
  const auto refuse = []() -> Result<UniqueId> {
    return Error{.code = Code::system, .what = "no port is left; really = none " + std::string(1000, '!')};
  };
  auto first = meet_in_space(space, 0, 0, 0, refuse);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, Code::system);
  auto second = meet_in_space(space, 1, 0, 0, refuse);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::system) << "one event, one code";
  EXPECT_NE(second.error().what.find("no port is left; really = none"), std::string::npos) << second.error().what;
}

TEST(MeetInSpace, AReasonCannotSteerATerminal) {
  std::map<std::string, std::string> values;
  Shelf space(values);
  const auto refuse = []() -> Result<UniqueId> { return Error{.code = Code::system, .what = "\x1b[2J is none"}; };
  ASSERT_FALSE(meet_in_space(space, 0, 0, 0, refuse));
  const auto heard = meet_in_space(space, 1, 0, 0, refuse);
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().text().find('\x1b'), std::string::npos);
  EXPECT_NE(heard.error().text().find("[2J is none"), std::string::npos) << heard.error().text();
}

TEST(MeetInSpace, AnythingElseIsNoId) {
  std::map<std::string, std::string> values;
  Shelf space(values);
  const auto never = []() -> Result<UniqueId> { return Error{.what = "not asked"}; };
  const std::string good = "answer:69", bad = "answer:65";  // the first byte: i, e
  const std::string damaged = good + std::string(256, '0');
  for (const std::string& word : {std::string(), std::string("answer:"), good, good + "0", good + "zz", damaged,
                                  damaged + "00", std::string("hello"), bad, bad + "x", bad + "ff", bad + "00"}) {
    values["tutti-0"] = word;
    EXPECT_FALSE(meet_in_space(space, 1, 0, 0, never)) << word;
  }
}

}  // namespace
}  // namespace tutti
