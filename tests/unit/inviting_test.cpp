// Messages that their sender writes into the buffers of their receiver: whatever is invited early, late or not at all,
// and however late devices read, calls of every algorithm have the same results, and no pass touches invited memory.
#include "plan/inviting.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/run_world.h"
#include "support/shapes.h"

namespace tutti {
namespace {

using namespace testing;
using Words = std::vector<std::uint32_t>;

constexpr auto junk = std::byte{0xa5};

/// Reads offered memory some flushes after the commit, as a device does.
class LateSender final : public Sender, public Offering {
 public:
  LateSender(FakeFifo& fifo, std::size_t slot_bytes, std::mt19937& random)
      : fifo_(fifo), slot_(slot_bytes), random_(random) {}

  Result<std::span<std::byte>> acquire() override {
    if (!ready() || fifo_.messages.size() == fifo_.slots) return std::span<std::byte>();
    return std::span<std::byte>(slot_);
  }
  Offering* offering() override { return this; }
  bool offer(std::size_t at, std::span<const std::byte> memory) override {
    if (random_() % 4 == 0) return false;
    offers_.push_back({at, memory});
    return true;
  }
  bool keep(std::span<const std::byte> memory) override {
    const bool touches = std::ranges::any_of(offers_, [&](const auto& offer) {
      return offer.second.data() < memory.data() + memory.size() &&
             memory.data() < offer.second.data() + offer.second.size();
    });
    if (!touches) return true;
    if (!committed_) {
      read();
      return true;
    }
    return ready();
  }
  Result<void> commit(std::size_t bytes) override {
    committed_ = bytes;
    return {};
  }
  Result<bool> flush() override { return ready(); }
  Result<Settled> settled() override { return settled_when(ready()); }
  std::size_t slot_bytes() const override { return slot_.size(); }

 private:
  void read() {
    for (const auto& [at, memory] : offers_) std::ranges::copy(memory, slot_.begin() + static_cast<std::ptrdiff_t>(at));
    offers_.clear();
  }
  /// False: the message has not left yet.
  bool ready() {
    if (!committed_) return true;
    if (random_() % 3 != 0) return false;
    read();
    std::copy_n(slot_.begin(), *committed_, fifo_.push(*committed_).bytes.get());
    committed_.reset();
    return true;
  }

  FakeFifo& fifo_;
  std::vector<std::byte> slot_;
  std::mt19937& random_;
  std::vector<std::pair<std::size_t, std::span<const std::byte>>> offers_;
  std::optional<std::size_t> committed_;
};

struct Seen {
  int invited = 0;
  int messages = 0;
};

/// Overwrites memory when a message is invited into it, as a peer may at any time from then on. The window on it is
/// open until `closed` has said otherwise: a device takes its time after the release.
class InvitingReceiver final : public Receiver, public Landing {
 public:
  InvitingReceiver(FakeFifo& fifo, std::mt19937& random, Seen& seen, int& windows)
      : fifo_(fifo), random_(random), seen_(seen), windows_(windows) {}

  Result<std::span<const std::byte>> peek(std::size_t bytes) override { return expect(bytes); }
  Landing* landing() override { return this; }
  Result<std::span<const std::byte>> expect(std::size_t) override {
    if (fifo_.messages.empty()) return std::span<const std::byte>();
    return std::span<const std::byte>(fifo_.messages.front().bytes.get(), fifo_.messages.front().size);
  }
  Result<std::size_t> arrived(std::size_t, std::size_t bytes) override { return bytes; }
  Result<std::size_t> land(std::size_t at, std::span<std::byte> into) override {
    if (random_() % 3 == 0) return std::size_t{0};
    if (const auto invited = invited_.find(taken_); invited != invited_.end()) {
      EXPECT_EQ(at, 0u);
      EXPECT_EQ(into.data(), invited->second.data());
      EXPECT_EQ(into.size(), invited->second.size());
      EXPECT_TRUE(std::ranges::all_of(into, [](std::byte b) { return b == junk; })) << "a pass wrote into it";
      invited_.erase(invited);
    }
    std::copy_n(fifo_.messages.front().bytes.get() + at, into.size(), into.data());
    return into.size();
  }
  Invited invite(std::size_t ahead, std::span<std::byte> memory) override {
    constexpr std::size_t ahead_max = 5;
    const auto choice = random_() % 4;
    if (ahead >= ahead_max || choice == 0) return Invited::later;
    if (choice == 1) return Invited::no;
    EXPECT_FALSE(invited_.contains(taken_ + ahead)) << "invited twice";
    invited_[taken_ + ahead] = memory;
    std::ranges::fill(memory, junk);
    ++seen_.invited;
    ++open_;
    ++windows_;
    return Invited::yes;
  }
  Result<void> release() override {
    EXPECT_FALSE(invited_.contains(taken_)) << "received elsewhere than where it was invited to";
    fifo_.messages.pop_front();
    ++taken_;
    ++seen_.messages;
    return {};
  }
  bool closed() override {
    if (random_() % 3 != 0) return false;
    // Those of messages that are still to come stay open.
    windows_ -= open_ - static_cast<int>(invited_.size());
    open_ = static_cast<int>(invited_.size());
    return true;
  }

 private:
  FakeFifo& fifo_;
  std::mt19937& random_;
  Seen& seen_;
  int& windows_;  ///< on memory of this rank
  int open_ = 0;  ///< of them, for this peer
  std::uint64_t taken_ = 0;
  std::map<std::uint64_t, std::span<std::byte>> invited_;
};

/// The buffers of one rank; in place where the collective permits and `in_place` asks for it.
struct Buffers {
  Words user, scratch;
  std::size_t input = 0, output = 0, output_words = 0;

  Buffers(const Plan& plan, std::size_t count, bool in_place) {
    const auto words = [&](int groups) { return static_cast<std::size_t>(groups) * count; };
    const std::size_t in = words(input_groups(plan.collective, plan.ranks, plan.rank, plan.root));
    output_words = words(output_groups(plan.collective, plan.ranks, plan.rank, plan.root));
    const int same = in > 0 ? in_place_block(plan.collective, plan.ranks, 1, plan.rank, plan.root, 0) : -1;
    in_place = in_place && same >= 0 && output_words > 0;
    input = in_place ? words(same) : 0;
    output = in_place ? 0 : in;
    user.assign(std::max(output + output_words, input + in), 0xdeadbeef);
    for (std::size_t i = 0; i < in; ++i) user[input + i] = static_cast<std::uint32_t>(plan.rank * 1'000'003 + 17 * i);
    scratch.assign(words(plan.scratch_groups), 0xdeadbeef);
  }
  Words result() const {
    const auto begin = user.begin() + static_cast<std::ptrdiff_t>(output);
    return {begin, begin + static_cast<std::ptrdiff_t>(output_words)};
  }
};

/// All ranks' results. With `random`, over fifos that invite and send late.
std::vector<Words> results(const std::vector<Plan>& plans, std::size_t count, bool in_place, std::mt19937* random,
                           Seen* seen) {
  constexpr std::size_t slot_bytes = 256;
  constexpr int channels = 2;
  const int ranks = plans.front().ranks;
  World world({.ranks = ranks, .channels = channels, .slots = 2, .slot_bytes = slot_bytes});
  const PassRules rules{.direct_bytes = 1};
  std::vector<std::unique_ptr<Buffers>> buffers;
  std::vector<Binding> bindings;
  for (const Plan& plan : plans) {
    buffers.push_back(std::make_unique<Buffers>(plan, count, in_place));
    Buffers& own = *buffers.back();
    const auto at = [](Words& words, std::size_t index) { return reinterpret_cast<std::byte*>(words.data() + index); };
    bindings.push_back({.input = at(own.user, own.input),
                        .output = at(own.user, own.output),
                        .scratch = at(own.scratch, 0),
                        .type = DataType::uint32,
                        .split = Split(count, sizeof(std::uint32_t), plan.parts),
                        .sequence = 1});
    bindings.back().split.tile(slot_bytes, plan.items_max);
  }
  std::vector<Run> runs;
  std::vector<int> windows(plans.size(), 0);  // open, by rank
  for (int rank = 0; rank < ranks; ++rank) {
    RunContext links = world.links(rank);
    links.rules = &rules;
    for (int channel = 0; random != nullptr && channel < channels; ++channel)
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == rank) continue;
        auto& ends = links.channels[static_cast<std::size_t>(channel)];
        const auto at = static_cast<std::size_t>(peer);
        ends.senders[at] = std::make_unique<LateSender>(world.fifo(channel, rank, peer), slot_bytes, *random);
        ends.receivers[at] = std::make_unique<InvitingReceiver>(world.fifo(channel, peer, rank), *random, *seen,
                                                                windows[static_cast<std::size_t>(rank)]);
      }
    runs.emplace_back(plans[static_cast<std::size_t>(rank)], bindings[static_cast<std::size_t>(rank)], links);
  }
  std::vector<bool> done(runs.size());
  constexpr int turns_max = 200'000;  // far more than any of these calls takes, with all the waits by chance
  for (int turn = 0; std::ranges::count(done, true) < ranks; ++turn) {
    const std::size_t i = random == nullptr ? static_cast<std::size_t>(turn % ranks) : (*random)() % runs.size();
    if (turn == turns_max) return ADD_FAILURE() << "stalls", std::vector<Words>();
    if (done[i]) continue;
    auto progress = runs[i].advance();
    if (!progress) return ADD_FAILURE() << progress.error().text(), std::vector<Words>();
    done[i] = *progress == Progress::done;
    if (done[i]) {
      EXPECT_EQ(windows[i], 0) << "rank " << i << " returns, and peers may write into its buffers";
    }
  }
  std::vector<Words> all;
  for (const auto& own : buffers) all.push_back(own->result());
  return all;
}

std::vector<Plan> plans_of(const Algorithm& algorithm, const Shape& shape) {
  std::vector<Plan> plans = lower_all(algorithm.build(shape), Access::slots);
  for (Plan& plan : plans) {
    plan = fuse(std::move(plan), 2);
    plan.invitations = invitations(plan);
  }
  return plans;
}

class EveryAlgorithm : public ::testing::TestWithParam<int> {};

TEST_P(EveryAlgorithm, HasTheSameResultWithInvitations) {
  Seen seen;
  for_every_algorithm(GetParam(), [&](const Algorithm& algorithm, const Shape& shape) {
    if (HasFailure() || !serves(algorithm, shape, Access::slots)) return;
    const auto plans = plans_of(algorithm, shape);
    for (const bool in_place : {false, true})
      for (const std::size_t count : {std::size_t{1}, std::size_t{50}, std::size_t{777}}) {
        std::mt19937 random(static_cast<unsigned>(count) + (in_place ? 1 : 0));
        const auto expected = results(plans, count, in_place, nullptr, nullptr);
        EXPECT_EQ(results(plans, count, in_place, &random, &seen), expected)
            << text(algorithm, shape) << ", " << count << (in_place ? " in place" : "");
        if (HasFailure()) return;
      }
  });
  EXPECT_GT(seen.invited, seen.messages / 20) << "of " << seen.messages << " messages, few were invited";
}

INSTANTIATE_TEST_SUITE_P(Inviting, EveryAlgorithm, ::testing::Values(2, 3, 4, 5, 8),
                         [](const auto& tested) { return std::to_string(tested.param) + "Ranks"; });

TEST(Inviting, IsForMessagesOfOneBlockThatNobodyElseNeeds) {
  for (const auto& [name, collective] : {std::pair{"ring", Collective::all_gather}, {"ring", Collective::all_reduce}}) {
    const Shape shape{.collective = collective, .ranks = 4};
    for (const Plan& plan : plans_of(*find_algorithm(name, shape), shape)) {
      EXPECT_EQ(plan.invitations.all.size(), 3u) << name << ": all blocks of the other ranks";
      for (const Invitation& invitation : plan.invitations.all) {
        EXPECT_EQ(plan.actions[invitation.pass].verb, Verb::copy);
        EXPECT_LE(invitation.free_from, invitation.pass);
      }
    }
  }
  const Shape bruck{.collective = Collective::all_gather, .ranks = 4};
  const auto plans = plans_of(*find_algorithm("bruck", bruck), bruck);
  EXPECT_LT(plans[0].invitations.all.size(), 2u) << "the second message has two blocks";
}

}  // namespace
}  // namespace tutti
