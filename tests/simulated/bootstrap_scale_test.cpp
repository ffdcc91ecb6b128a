// What a start of many ranks takes: messages one after the other, and sockets, counted on a network where each message
// takes one step.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>

#include "bootstrap/bootstrap.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t step_ns = 20 * ms;

class Crowd {
 public:
  explicit Crowd(int ranks) : system_({.seed = 1, .delay_ns_max = 1, .step_ns = step_ns}), ranks_(ranks) {
    secret_.fill(std::byte{7});
    // Far away: what is looked for are counts.
    limits_ = {.handshake_ms = 900'000, .init_ms = 900'000, .missing_report_ms = 0, .blob_bytes_max = 8};
    auto opened = BootstrapRoot::open(system_, at_, secret_, limits_,
                                      {.info = [this](const std::string& text) { notes.push_back(text); }});
    EXPECT_TRUE(opened);
    root_ = *std::move(opened);
    for (int rank = 0; rank < ranks; ++rank)
      members_.push_back(std::make_unique<Bootstrap>(
          system_, UniqueId{.root = at_, .secret = secret_},
          Bootstrap::Who{.rank = rank, .ranks = ranks, .version = 100, .process = "p" + std::to_string(rank)},
          limits_));
  }
  /// All take part at once; returns how many messages came one after the other until all were done, or −1.
  std::int64_t exchange() {
    for (int rank = 0; rank < ranks_; ++rank) members_[index(rank)]->exchange(blob(rank));
    const std::int64_t begun = system_.now_ns() / step_ns;
    std::vector<bool> done(index(ranks_));
    for (int left = ranks_; left > 0;) {
      if (system_.now_ns() / step_ns - begun > 20'000) return -1;
      for (int rank = 0; rank < ranks_; ++rank) {
        if (done[index(rank)]) continue;
        const auto complete = members_[index(rank)]->advance();
        if (!complete) {
          ADD_FAILURE() << complete.error().text();
          return -1;
        }
        done[index(rank)] = *complete;
        left -= *complete;
      }
      (void)root_->advance();
      rest();
    }
    return system_.now_ns() / step_ns - begun;
  }
  bool all_have_all() const {
    for (const auto& member : members_) {
      if (member->gathered().size() != index(ranks_)) return false;
      for (int rank = 0; rank < ranks_; ++rank)
        if (member->gathered()[index(rank)] != blob(rank)) return false;
    }
    return true;
  }
  std::size_t root_sockets_most = 0;
  std::size_t rank_sockets_most = 0;
  std::vector<std::string> notes;

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  /// Most are empty: every rank gets all.
  static Blob blob(int rank) { return Blob(rank % 50 == 7 ? 2 : 0, static_cast<std::byte>(rank / 50)); }
  void rest() {
    std::vector<PollItem> items;
    std::int64_t until = root_->poll_set(items);
    root_sockets_most = std::max(root_sockets_most, items.size());
    for (const auto& member : members_) {
      const std::size_t before = items.size();
      until = std::min(until, member->poll_set(items));
      rank_sockets_most = std::max(rank_sockets_most, items.size() - before);
    }
    system_.poll(items, std::max<std::int64_t>(until - system_.now_ns(), 0));
  }

  SimSystem system_;
  SocketAddress at_{.host = "10.0.0.1", .port = 4000};
  Secret secret_;
  BootstrapLimits limits_;
  int ranks_;
  std::unique_ptr<BootstrapRoot> root_;
  std::vector<std::unique_ptr<Bootstrap>> members_;
};

class StartOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, StartOf, testing::Values(16, 256, 1'024), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Nightly, StartOf, testing::Values(4'096), testing::PrintToStringParamName());

TEST_P(StartOf, TakesFewMessagesAndSockets) {
  const int ranks = GetParam();
  const BootstrapLimits defaults;
  const int depth = static_cast<int>(std::ceil(std::log(ranks) / std::log(defaults.fan_out)));
  Crowd crowd(ranks);
  const std::int64_t start = crowd.exchange();
  EXPECT_TRUE(crowd.all_have_all());
  const std::int64_t exchange = crowd.exchange();
  EXPECT_TRUE(crowd.all_have_all());
  std::cout << fmt::format(
      "{} ranks: {} messages one after the other for an exchange, {} for the start; "
      "at most {} sockets at the root, {} at a rank\n",
      ranks, exchange, start, crowd.root_sockets_most, crowd.rank_sockets_most);
  ASSERT_GE(start, 0);
  ASSERT_GE(exchange, 1);
  // Up, down, and up once more to confirm.
  EXPECT_LE(exchange, 3 * depth + 1);
  // Port, parent, root, and those below; at the root also those who come and those who go to their places.
  EXPECT_LE(crowd.rank_sockets_most, 3u + static_cast<std::size_t>(defaults.fan_out));
  EXPECT_LE(crowd.root_sockets_most, 1u + 64u + 2 * 64u + static_cast<std::size_t>(defaults.fan_out));
  ASSERT_EQ(crowd.notes.size(), 1u);
  EXPECT_NE(crowd.notes[0].find(fmt::format("{} ranks met in a tree of depth {}", ranks, depth)), std::string::npos)
      << crowd.notes[0];
}

}  // namespace
}  // namespace tutti
