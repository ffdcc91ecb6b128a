// Which rank describes which machine, and what rank 0 makes of what it is sent.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>

#include "base/fixed_text.h"
#include "init/phases/machine_exchange.h"
#include "place/locator.h"
#include "topology/sources/read.h"

namespace tutti {
namespace {

constexpr const char* machine_a = TUTTI_TEST_MACHINES "/switched-8.xml";
constexpr const char* machine_b = TUTTI_TEST_MACHINES "/cube-mesh-double.txt";

std::string text_of(const char* file) {
  const auto machine = topology::read_machine(file);
  EXPECT_TRUE(machine);
  return machine ? machine_text(*machine) : std::string();
}

class Exchange : public ::testing::Test {
 protected:
  void add(int host, std::string text, bool gpu = false) {
    PeerInfo info;
    info.machine = *sha256(std::as_bytes(std::span(text)));
    info.machine_bytes = static_cast<std::uint32_t>(text.size());
    if (gpu) put_text(info.location.gpu, "0000:81:00.0");
    infos_.push_back(info);
    hosts_.push_back(host);
    texts_.push_back(std::move(text));
  }

  /// All ranks' exchanges, of which rank 0's says what it was told. `change`: what a rank sends.
  Result<std::vector<SharedMachine>> run(const std::function<void(Rank, Blob&)>& change = {}) {
    std::vector<MachineExchange> ranks(infos_.size(), MachineExchange(infos_, hosts_));
    std::optional<Error> trouble;
    for (exchanges_ = 0; ranks[0].more(); ++exchanges_) {
      std::vector<Blob> gathered;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        gathered.push_back(ranks[rank].part(static_cast<Rank>(rank), texts_[rank]));
        EXPECT_LE(gathered.back().size(), BootstrapLimits{}.blob_bytes_max);
        if (!gathered.back().empty()) senders_.insert(static_cast<Rank>(rank));
        if (change) change(static_cast<Rank>(rank), gathered.back());
      }
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        auto taken = ranks[rank].take(static_cast<Rank>(rank), gathered);
        if (!taken && !trouble) trouble = std::move(taken).error();
        EXPECT_EQ(ranks[rank].more(), ranks[0].more()) << "all make as many exchanges";
      }
    }
    if (trouble) return *trouble;
    return ranks[0].machines(own_);
  }

  std::vector<PeerInfo> infos_;
  std::vector<int> hosts_;
  std::vector<std::string> texts_;
  std::set<Rank> senders_;
  int exchanges_ = 0;
  const SharedMachine own_ = std::make_shared<const topology::Topology>();
};

TEST_F(Exchange, IsNotNeededWhereHostsAreAlike) {
  for (const int host : {0, 0, 2, 3}) add(host, text_of(machine_a));
  const auto machines = run();
  ASSERT_TRUE(machines);
  EXPECT_EQ(exchanges_, 0);
  EXPECT_EQ(*machines, std::vector(4, own_));
}

TEST_F(Exchange, SendsEachKindOnce) {
  for (const int host : {0, 1, 2, 3}) add(host, text_of(host % 2 == 0 ? machine_a : machine_b));
  add(1, text_of(machine_a));  // another rank of a host does not count
  const auto machines = run();
  ASSERT_TRUE(machines) << machines.error().text();
  EXPECT_EQ(senders_, std::set<Rank>{1});
  EXPECT_EQ(exchanges_, 1);
  EXPECT_EQ((*machines)[0], own_);
  EXPECT_EQ((*machines)[2], own_);
  EXPECT_EQ((*machines)[1], (*machines)[3]);
  EXPECT_EQ((*machines)[1], (*machines)[4]);
  EXPECT_EQ((*machines)[1]->gpus().size(), 8u);
}

TEST_F(Exchange, HearsTheRankThatHasAskedTheDriver) {
  add(0, text_of(machine_a));
  add(0, text_of(machine_b), /*gpu=*/true);
  add(0, text_of(machine_a), /*gpu=*/true);
  const auto machines = run();
  ASSERT_TRUE(machines);
  EXPECT_EQ(senders_, std::set<Rank>{1});
  EXPECT_NE((*machines)[0], own_) << "rank 0 knows less of its host than rank 1";
}

TEST_F(Exchange, CutsALargeMachineIntoParts) {
  std::string large = text_of(machine_b);
  large.insert(large.find("<object"), std::string(150'000, ' '));
  add(0, text_of(machine_a));
  add(1, text_of(machine_b));
  add(2, large);
  const auto machines = run();
  ASSERT_TRUE(machines) << machines.error().text();
  EXPECT_EQ(exchanges_, 3);
  EXPECT_EQ((*machines)[2]->gpus().size(), 8u);
}

TEST_F(Exchange, LeavesOutWhatIsTooLargeOrTooMuch) {
  add(0, text_of(machine_a));
  add(1, std::string(MachineExchange::text_bytes_max + 1, 'x'));
  add(2, "");
  const auto machines = run();
  ASSERT_TRUE(machines);
  EXPECT_EQ(exchanges_, 0);
  EXPECT_EQ((*machines)[1], nullptr);
  EXPECT_EQ((*machines)[2], nullptr);
  for (int host = 3; host < 80; ++host)
    add(host, text_of(machine_b) + std::string(static_cast<std::size_t>(host), ' '));
  const auto many = run();
  ASSERT_TRUE(many);
  EXPECT_EQ(senders_.size(), MachineExchange::machines_max);
  EXPECT_EQ(many->back(), nullptr);
}

TEST_F(Exchange, AsksForNothingThatRankZeroCannotRead) {
  add(0, "");
  add(1, text_of(machine_b));
  ASSERT_TRUE(run());
  EXPECT_EQ(exchanges_, 0);
}

TEST_F(Exchange, RefusesWhatWasNotAnnounced) {
  add(0, text_of(machine_a));
  add(1, text_of(machine_b));
  const auto refused = [&](const std::function<void(Blob&)>& change) {
    auto machines = run([&](Rank rank, Blob& blob) {
      if (rank == 1) change(blob);
    });
    EXPECT_FALSE(machines);
    if (machines) return std::string();
    EXPECT_EQ(machines.error().code, Code::remote);
    return machines.error().text();
  };
  EXPECT_NE(refused([](Blob& blob) { blob.pop_back(); }).find("were expected"), std::string::npos);
  EXPECT_NE(refused([](Blob& blob) { blob.clear(); }).find("were expected"), std::string::npos);
  EXPECT_NE(refused([](Blob& blob) { blob.resize(60'000); }).find("were expected"), std::string::npos);
  EXPECT_NE(refused([](Blob& blob) { blob[9] ^= std::byte{1}; }).find("announced"), std::string::npos);
  EXPECT_NE(refused([](Blob& blob) { blob[9] ^= std::byte{1}; }).find("peer 1"), std::string::npos);
}

TEST_F(Exchange, RefusesWhatIsNoMachine) {
  add(0, text_of(machine_a));
  add(1, "<topology version=\"2.0\"><object type=\"Machine\"");
  const auto machines = run();
  ASSERT_FALSE(machines);
  EXPECT_NE(machines.error().text().find("not a machine"), std::string::npos) << machines.error().text();
  EXPECT_NE(machines.error().text().find("peer 1"), std::string::npos) << machines.error().text();
}

}  // namespace
}  // namespace tutti
