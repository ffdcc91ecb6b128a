// What a rank's calls have of its peers: two ranks of one process; and that ranks without call descriptors find by
// their marks that their calls differ.
#include "comm/peer_links.h"

#include <gtest/gtest.h>

#include "comm/call_marks.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

Config plain_config() {
  auto config = Config::load({}, [](const std::string&) { return Error{.code = Code::system}; });
  EXPECT_TRUE(config);
  return *std::move(config);
}

class TwoRanks : public ::testing::Test {
 protected:
  TwoRanks() {
    for (Rank rank = 0; rank < 2; ++rank) areas_.push_back(*process_.memory.make_area({.ranks = 2, .channels = 3}));
  }
  Membership members_of(Rank rank, std::vector<int> hosts) {
    Membership members;
    members.rank = rank;
    members.ranks = 2;
    members.area = areas_[static_cast<std::size_t>(rank)];
    members.hosts = std::move(hosts);
    for (const auto& area : areas_) members.peers.push_back({.thread_area = area, .area = area->area});
    return members;
  }

  SimSystem system_{SimOptions{}};
  Process process_{system_, plain_config(), Service::Mode::manual};
  std::vector<std::shared_ptr<OwnedArea>> areas_;
  std::atomic<bool> failed_ = false;
};

TEST_F(TwoRanks, HaveOneAnothersDoorbellsAndRingThose) {
  const Membership members = members_of(1, {0, 0});
  const CallMark mark;
  PeerLinks links(process_, members, mark, nullptr, failed_);
  EXPECT_EQ(&links.doorbell(), &areas_[1]->area.header().doorbell);
  for (const auto& area : areas_) area->area.header().doorbell.mark_asleep();
  links.ring_all();
  EXPECT_EQ(areas_[0]->area.header().doorbell.asleep, 0u);
  EXPECT_EQ(areas_[1]->area.header().doorbell.asleep, 1u) << "its own";

  const RunContext context = links.context();
  EXPECT_EQ(context.channels.data(), links.channels().of_collectives().data());
  EXPECT_EQ(context.descriptors, &links.descriptors());
  ASSERT_EQ(context.doorbells.size(), 2u);
  EXPECT_EQ(context.doorbells[1], &links.doorbell());
  EXPECT_FALSE(context.opens);
  EXPECT_LT(links.poll_deadline_ns(/*awaited=*/false), links.poll_deadline_ns(/*awaited=*/true))
      << "messages through shared memory do not wake a poll";
}

TEST_F(TwoRanks, OfOneHostHaveNoMarks) {
  const Membership members = members_of(0, {0, 0});
  const CallMarks marks(system_, members, failed_);
  EXPECT_EQ(marks.history(), nullptr);
  EXPECT_EQ(marks.comparison(), nullptr);
}

TEST_F(TwoRanks, OfTwoHostsFindThatTheirCallsDiffer) {
  std::vector<Membership> members;
  std::vector<std::unique_ptr<CallMarks>> marks;
  for (Rank rank = 0; rank < 2; ++rank) {
    members.push_back(members_of(rank, {0, 1}));
    members.back().control = std::make_shared<ControlLinks>(system_, std::vector<ControlLinks::Link>(), 0);
  }
  for (const Membership& one : members) marks.push_back(std::make_unique<CallMarks>(system_, one, failed_));
  const auto sign = [&](std::uint64_t sequence, std::uint64_t count, std::uint64_t other_count) {
    marks[0]->sign(sequence, {.count = count});
    marks[1]->sign(sequence, {.count = other_count});
  };
  sign(1, 7, 7);
  EXPECT_EQ(marks[0]->mark().sequence, 1u);
  EXPECT_EQ(marks[0]->history()->latest(), 1u);
  EXPECT_EQ(areas_[0]->area.header().calls.load()->sequence(), 1u);
  EXPECT_TRUE(marks[0]->comparison()->look());
  sign(2, 7, 8);
  const auto looked = marks[0]->comparison()->look();
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, Code::invalid_usage);
}

}  // namespace
}  // namespace tutti
