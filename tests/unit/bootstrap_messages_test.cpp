// Messages survive the wire; cut, prolonged or changed ones are refused or harmless.
#include "bootstrap/bootstrap_messages.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "init/peer_info.h"
#include "support/seeds.h"

namespace tutti::bootstrap {
namespace {

constexpr std::size_t blob_max = 64;

Bootstrap::Who who() {
  return {.rank = 5,
          .ranks = 8,
          .settings = 0xfedc'ba98'7654'3210,
          .settings_text = "TUTTI_ALGO=ring",
          .version = 100,
          .source = 0xfedc'ba98'7654'3210,
          .process = "pid 12 on node-b"};
}

Blob blob(int seed) {
  return Blob(static_cast<std::size_t>(seed), static_cast<std::byte>(seed));
}

TEST(Messages, JoinSurvives) {
  const auto read = read_join(write_join(who()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rank, 5);
  EXPECT_EQ(read->ranks, 8);
  EXPECT_EQ(read->settings, who().settings);
  EXPECT_EQ(read->settings_text, who().settings_text);
  EXPECT_EQ(read->version, 100);
  EXPECT_EQ(read->source, who().source);
  EXPECT_EQ(read->process, who().process);
}

TEST(Messages, LongTextsAreCutAndFitTheBound) {
  auto long_winded = who();
  long_winded.settings_text.assign(100'000, 'x');
  long_winded.process.assign(100'000, 'y');
  const Bytes bytes = write_join(long_winded);
  EXPECT_LE(bytes.size(), join_bytes_max);
  EXPECT_EQ(read_join(bytes)->settings_text.size(), settings_text_bytes_max);
  const Bytes failure = write_failure({.code = Code::remote, .what = std::string(100'000, 'z')});
  EXPECT_LE(failure.size(), notice_bytes_max);
  EXPECT_EQ(read_failure(failure).what.size(), text_bytes_max);
}

TEST(Messages, TextsOfPeersCannotSteerATerminal) {
  auto evil = who();
  evil.process = "pid 1\x1b[2J\x07\x7f\r";
  EXPECT_EQ(read_join(write_join(evil))->process, "pid 1\\x1b[2J\\x07\\x7f\\x0d");
  EXPECT_EQ(read_failure(write_failure({.code = Code::remote, .what = "two\nlines × \x1b"})).what,
            "two\nlines × \\x1b");
  EXPECT_FALSE(read_listens(write_listens({.host = "10.0.0.9\n", .port = 1})));
  EXPECT_FALSE(read_welcome(write_welcome({.at = {.host = "10.0.0.9\x1b", .port = 1}})));
  // What lies in shared memory, or comes as one piece.
  std::array<char, 12> raw;
  raw.fill('\xff');
  EXPECT_EQ(get_text(raw).substr(0, 8), "\\xff\\xff");
  put_text(raw, "a\n\x9b");
  EXPECT_EQ(get_text(raw), "a\\x0a\\x9b");
  EXPECT_EQ(get_text(raw, Lines::several), "a\n\\x9b");
}

TEST(Messages, GatheredSurvives) {
  const std::vector<Blob> blobs{blob(3), blob(0), blob(64)};
  const Bytes bytes = write_gathered(7, blobs);
  EXPECT_LE(bytes.size(), gathered_bytes_max(3, blob_max));
  EXPECT_EQ(*read_gathered(bytes, 7, 3, blob_max), blobs);
  EXPECT_FALSE(read_gathered(bytes, 6, 3, blob_max)) << "another round";
  EXPECT_FALSE(read_gathered(bytes, 7, 2, blob_max)) << "fewer ranks";
  EXPECT_FALSE(read_gathered(bytes, 7, 4, blob_max)) << "more ranks";
  EXPECT_FALSE(read_gathered(bytes, 7, 3, 63)) << "a longer blob than allowed";
}

TEST(Messages, ContributionSurvives) {
  const Bytes bytes = write_contribution(3, 9, blob(64));
  EXPECT_LE(bytes.size(), contribution_bytes_max(blob_max));
  EXPECT_EQ(read_contribution(bytes, blob_max)->rank, 3);
  EXPECT_EQ(read_contribution(bytes, blob_max)->round, 9u);
  EXPECT_EQ(read_contribution(bytes, blob_max)->blob, blob(64));
  EXPECT_FALSE(read_contribution(bytes, 63));
}

TEST(Messages, FailureSurvives) {
  const Error read = read_failure(write_failure({.code = Code::timeout, .what = "why", .peer = 3}));
  EXPECT_EQ(read.code, Code::timeout);
  EXPECT_EQ(read.what, "why");
  EXPECT_EQ(read.peer, 3);
  EXPECT_EQ(read_failure(write_failure({.code = Code::success, .what = ""})).what, "malformed failure message");
  EXPECT_EQ(read_failure(write_failure({.code = static_cast<Code>(77), .what = ""})).code, Code::remote);
}

TEST(Messages, PlacesSurvive) {
  const Welcome place{.listen = true, .parent = 7, .at = {"fe80::1%eth0", 4000}, .process = "pid 3 on node-c"};
  const auto read = read_welcome(write_welcome(place));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->listen);
  EXPECT_EQ(read->parent, 7);
  EXPECT_EQ(read->at, place.at);
  EXPECT_EQ(read->process, place.process);
  EXPECT_EQ(*read_listens(write_listens(place.at)), place.at);
  EXPECT_LE(write_welcome({.at = {std::string(9'999, 'x'), 1}, .process = std::string(9'999, 'y')}).size(),
            notice_bytes_max);
}

TEST(Messages, NoticesFromBelowSurvive) {
  const auto confirmation = read_confirmation(write_confirmation({.round = 4, .refused = 9}));
  ASSERT_TRUE(confirmation);
  EXPECT_EQ(confirmation->round, 4u);
  EXPECT_EQ(confirmation->refused, 9u);
  const auto gone = read_gone(write_gone({.rank = 4, .by = 2, .reason = "it\x1bleft"}));
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->rank, 4);
  EXPECT_EQ(gone->by, 2);
  EXPECT_EQ(gone->reason, "it\\x1bleft");
  EXPECT_FALSE(gone->left);
  const auto left = read_gone(write_gone({.rank = 4, .by = 2, .reason = "it left", .left = true}));
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->left);
  EXPECT_FALSE(read_gone(write_gone({.rank = -1, .by = 2})));
  EXPECT_LE(write_gone({.reason = std::string(9'999, 'x')}).size(), notice_bytes_max);
}

TEST(Messages, ExcusesSurvive) {
  const auto excuse = read_excuse(write_excuse(
      excused({.rank = 3, .ranks = 5, .process = "pid 3"}, {.code = Code::system, .what = "open", .sys_errno = 24})));
  ASSERT_TRUE(excuse);
  EXPECT_EQ(excuse->rank, 3);
  EXPECT_EQ(excuse->ranks, 5);
  EXPECT_EQ(excuse->why.code, Code::system);
  EXPECT_EQ(excuse->why.peer, 3);
  EXPECT_EQ(excuse->why.what,
            "rank 3 (pid 3) could not join: system error: open: Too many open files (errno 24): raise ulimit -n");
  EXPECT_FALSE(read_excuse(write_excuse({.rank = 0, .ranks = 0})));
  EXPECT_EQ(excused({.rank = 7, .ranks = 5}, {}).why.peer, -1) << "a rank that does not exist";
  EXPECT_LE(write_excuse({.why = {.what = std::string(9'999, 'x')}}).size(), join_bytes_max);
}

std::vector<Bytes> one_of_each() {
  return {write_join(who()),
          write_contribution(2, 1, blob(9)),
          write_gathered(1, {blob(1), blob(2)}),
          write_failure({.code = Code::remote, .what = "words"}),
          write_welcome({.parent = 3, .at = {"::1", 5}, .process = "pid 3"}),
          write_listens({"10.0.0.1", 5}),
          write_confirmation({.round = 4, .refused = 9}),
          write_gone({.rank = 4, .by = 2, .reason = "it left"}),
          write_excuse({.rank = 1, .ranks = 2, .why = {.code = Code::system, .what = "words"}})};
}

/// True when some message can be read from these bytes.
bool readable(std::size_t kind, const Bytes& bytes) {
  if (kind == 0) return static_cast<bool>(read_join(bytes));
  if (kind == 1) return static_cast<bool>(read_contribution(bytes, blob_max));
  if (kind == 2) return static_cast<bool>(read_gathered(bytes, 1, 2, blob_max));
  if (kind == 4) return static_cast<bool>(read_welcome(bytes));
  if (kind == 5) return static_cast<bool>(read_listens(bytes));
  if (kind == 6) return static_cast<bool>(read_confirmation(bytes));
  if (kind == 7) return static_cast<bool>(read_gone(bytes));
  if (kind == 8) return static_cast<bool>(read_excuse(bytes));
  return read_failure(bytes).what != "malformed failure message";
}

TEST(Messages, EveryCutAndEveryAdditionIsSeen) {
  const auto all = one_of_each();
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    EXPECT_TRUE(readable(kind, all[kind]));
    for (std::size_t length = 0; length < all[kind].size(); ++length)
      EXPECT_FALSE(readable(kind, Bytes(all[kind].begin(), all[kind].begin() + static_cast<std::ptrdiff_t>(length))));
    Bytes longer = all[kind];
    longer.push_back(std::byte{0});
    EXPECT_FALSE(readable(kind, longer));
  }
}

/// What a sanitizer would object to is the failure here.
TEST(Messages, RandomChangesAreHarmless) {
  const auto all = one_of_each();
  for (const std::uint64_t seed : seeds(20'000)) {
    std::mt19937_64 random(seed);
    const std::size_t kind = random() % all.size();
    Bytes bytes = all[kind];
    for (std::uint64_t changes = 1 + random() % 8; changes > 0 && !bytes.empty(); --changes) {
      const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size());
      switch (random() % 3) {
        case 0: *at = static_cast<std::byte>(random()); break;
        case 1: bytes.erase(at); break;
        case 2: bytes.insert(at, static_cast<std::byte>(random())); break;
      }
    }
    if (const auto join = read_join(bytes)) {
      EXPECT_LE(join->settings_text.size(), settings_text_bytes_max);
    }
    (void)readable(kind, bytes);
  }
}

}  // namespace
}  // namespace tutti::bootstrap
