// Who is silent for too long is found, unless its host is heard; a look counts for no more than it was to take.
#include "comm/heartbeat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "comm/control_frames.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t silence_ns = 4'000 * ms;
const SocketAddress here{.host = "10.0.0.1", .port = 4711};

class Beating : public ::testing::Test {
 protected:
  ControlLink& add(int rank, int host) {
    links_.push_back({.rank = rank,
                      .host = host,
                      .wire = Wire(system_, *system_.connect(here)),
                      .mirror = std::make_shared<MirroredHeader>(AreaShape{.ranks = 4}),
                      .who = "somebody"});
    return links_.back();
  }
  void hear(ControlLink& link) {
    link.heard = true;
    link.silent_ns = 0;
  }
  /// Looks as planned for so long; nothing is read.
  void pass(std::int64_t for_ns) {
    for (const std::int64_t end_ns = system_.now_ns() + for_ns; system_.now_ns() < end_ns;) {
      const std::int64_t next = std::min(heartbeat_.plan_look(links_), end_ns);
      system_.poll({}, std::max<std::int64_t>(0, next - system_.now_ns()));
      heartbeat_.pass_time(links_);
      heartbeat_.beat(links_);
    }
  }

  SimSystem system_{{}};
  Socket listener_ = *system_.listen(here);
  Heartbeat heartbeat_{system_, silence_ns, /*start_ns=*/30'000 * ms};
  std::vector<ControlLink> links_;
};

TEST_F(Beating, WhoIsSilentIsFound) {
  hear(add(1, 0));
  pass(silence_ns + 300 * ms);
  EXPECT_EQ(heartbeat_.find_silent(links_), nullptr) << "it may be late";
  EXPECT_FALSE(heartbeat_.heard_lately(links_[0]));
  EXPECT_GT(heartbeat_.late_ns(links_[0]), silence_ns);
  pass(200 * ms);
  EXPECT_EQ(heartbeat_.find_silent(links_), &links_[0]);
  links_[0].said = true;
  EXPECT_EQ(heartbeat_.find_silent(links_), nullptr) << "its end is known";
}

TEST_F(Beating, WhoWasNeverHeardHasUntilTheStartIsOver) {
  add(1, 0);
  pass(25'000 * ms);
  EXPECT_EQ(heartbeat_.find_silent(links_), nullptr);
  pass(6'000 * ms);
  EXPECT_EQ(heartbeat_.find_silent(links_), &links_[0]);
}

TEST_F(Beating, AHostThatIsHeardSeesMore) {
  for (const int rank : {1, 2}) add(rank, /*host=*/1);
  for (ControlLink& link : links_) hear(link);
  pass(silence_ns);
  hear(links_[1]);
  pass(500 * ms);
  EXPECT_EQ(heartbeat_.find_silent(links_), nullptr);
  links_[1].ended = true;
  EXPECT_EQ(heartbeat_.find_silent(links_), &links_[0]);
}

TEST_F(Beating, APauseOfThisThreadIsNoSilence) {
  hear(add(1, 0));
  pass(1'000 * ms);
  const std::int64_t before_ns = links_[0].silent_ns;
  system_.poll({}, 3'600'000 * ms);
  heartbeat_.pass_time(links_);
  EXPECT_LT(links_[0].silent_ns, before_ns + 500 * ms);
}

TEST_F(Beating, BeatsAreSentUntilTooManyAreUnanswered) {
  add(1, 0);
  pass(20'000 * ms);
  Wire peer(system_, *system_.accept(listener_));
  int beats = 0;
  for (int turn = 0; turn < 100; ++turn) {
    for (auto head = peer.take(ControlFrames::head_bytes); head && *head; head = peer.take(ControlFrames::head_bytes))
      ++beats;
    system_.poll({}, ms);
  }
  EXPECT_EQ(beats, 32);
  EXPECT_FALSE(Heartbeat(system_, /*silence_ns=*/0, 0).beats()) << "silence is allowed";
}

}  // namespace
}  // namespace tutti
