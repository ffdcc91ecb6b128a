// A process that ends during or after a call, on a seeded clock and network: what it had completed succeeds on all
// other hosts, what it had not fails on those that need it, and nobody waits for long.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "plan/schedule.h"
#include "simulated/hosts_world.h"
#include "support/seeds.h"

namespace tutti {
namespace {

constexpr int ends_of_a_call = 4;
constexpr std::int64_t limit_ns = 20 * second_ns;  // of what must succeed

/// Counts how often operations were advanced.
class Counted final : public Operation {
 public:
  Counted(Operation& operation, int& turns) : operation_(operation), turns_(turns) {}
  Result<Progress> advance() override {
    ++turns_;
    return operation_.advance();
  }
  Communicator* communicator() override { return operation_.communicator(); }
  Result<void> poll_peers() override { return operation_.poll_peers(); }

 private:
  Operation& operation_;
  int& turns_;
};

/// One call with data of all ranks.
class Called {
 public:
  Called(Collective collective, int ranks, std::size_t count, Rank root)
      : collective_(collective), ranks_(ranks), count_(count), root_(root) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      auto& in = in_.emplace_back(groups(rank, true) * count);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, i);
      out_.emplace_back(collective == Collective::barrier ? 0 : groups(rank, false) * count, -1);
    }
  }

  Request request(Rank rank) {
    const auto at = static_cast<std::size_t>(rank);
    return {.collective = collective_,
            .input = reinterpret_cast<const std::byte*>(in_[at].data()),
            .output = reinterpret_cast<std::byte*>(out_[at].data()),
            .count = collective_ == Collective::barrier ? 0 : count_,
            .type = DataType::int64,
            .root = rooted(collective_) ? root_ : 0};
  }

  void check(Rank rank) const {
    const auto& out = out_[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], expected(rank, i / count_, i % count_)) << "rank " << rank << " at " << i;
  }

 private:
  std::size_t groups(Rank rank, bool input) const {
    return static_cast<std::size_t>(input ? input_groups(collective_, ranks_, rank, root_)
                                          : output_groups(collective_, ranks_, rank, root_));
  }
  static std::int64_t value(Rank rank, std::size_t i) { return 1'000'000 * (rank + 1) + static_cast<std::int64_t>(i); }
  std::int64_t expected(Rank rank, std::size_t group, std::size_t i) const {
    const std::size_t own = static_cast<std::size_t>(rank) * count_ + i;
    switch (collective_) {
      case Collective::all_gather:
      case Collective::gather: return value(static_cast<Rank>(group), i);
      case Collective::all_to_all: return value(static_cast<Rank>(group), own);
      case Collective::broadcast: return value(root_, i);
      case Collective::scatter: return value(root_, own);
      default: break;
    }
    Rank others = ranks_;
    if (collective_ == Collective::scan) others = rank + 1;
    if (collective_ == Collective::ex_scan) others = rank;
    std::int64_t sum = 0;
    for (Rank other = 0; other < others; ++other)
      sum += value(other, collective_ == Collective::reduce_scatter ? own : i);
    return sum;
  }

  Collective collective_;
  int ranks_;
  std::size_t count_;
  Rank root_;
  std::vector<std::vector<std::int64_t>> in_, out_;
};

struct Outcome {
  std::vector<Ended> ended;  ///< by rank
  int turns = 0;             ///< of the ranks of the host that ended
  bool completed = false;    ///< by all of them
};

/// All ranks call; the process of `host` ends once its ranks have been advanced so often in all, or are done.
Outcome call_until_it_ends(HostsWorld& world, Called& called, int host, int turns) {
  Outcome outcome;
  std::vector<std::unique_ptr<Batch>> batches;
  std::vector<std::unique_ptr<Counted>> counted;
  std::vector<Operation*> operations;
  int others = 0;
  const auto is_there = [&](std::size_t rank) { return world.host_of[rank] == host; };
  for (std::size_t rank = 0; rank < world.made.size(); ++rank) {
    batches.push_back(std::make_unique<Batch>(world.made[rank]));
    batches.back()->add(called.request(static_cast<Rank>(rank)));
    batches.back()->enqueue();
    counted.push_back(std::make_unique<Counted>(*batches.back(), is_there(rank) ? outcome.turns : others));
    operations.push_back(counted.back().get());
  }
  outcome.ended.resize(operations.size());
  const auto all = [&](auto which) {
    for (std::size_t rank = 0; rank < operations.size(); ++rank)
      if (which(rank) && !outcome.ended[rank]) return false;
    return true;
  };
  const std::int64_t begun = world.system.now_ns();
  while (world.system.now_ns() < begun + limit_ns && !(outcome.turns >= turns || all(is_there)))
    world.turn(operations, outcome.ended);
  outcome.completed = all(is_there);
  world.dead.insert(host);
  world.system.end(host);
  for (std::size_t rank = 0; rank < operations.size(); ++rank)
    if (is_there(rank)) operations[rank] = nullptr;
  // Two, and on the way; longer where the call itself is slow.
  const std::int64_t told_by = world.system.now_ns() + 3 * second_ns + 5 * (world.system.now_ns() - begun);
  while (world.system.now_ns() < told_by && !all([&](std::size_t rank) { return !is_there(rank); }))
    world.turn(operations, outcome.ended);
  return outcome;
}

void expect_lost(const HostsWorld& world, const Result<void>& result, int host) {
  ASSERT_FALSE(result);
  const Error& error = result.error();
  EXPECT_EQ(error.code, Code::remote) << error.text();
  ASSERT_GE(error.peer, 0) << error.text();
  EXPECT_EQ(world.host_of[static_cast<std::size_t>(error.peer)], host) << error.text();
}

void expect_right(HostsWorld& world, Called& called, int host, const Outcome& outcome) {
  for (Rank rank = 0; rank < world.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (world.host_of[at] == host) continue;
    ASSERT_TRUE(outcome.ended[at]) << "rank " << rank << " still waits, seconds after the end";
    const bool success = static_cast<bool>(*outcome.ended[at]);
    ASSERT_TRUE(success || !outcome.completed) << "rank " << rank << ": " << outcome.ended[at]->error().text();
    if (success)
      called.check(rank);
    else
      expect_lost(world, *outcome.ended[at], host);
    if (::testing::Test::HasFatalFailure()) return;
  }
  // The next call fails on all, for each needs that process.
  const auto next = world.call([](Rank) { return Request{.collective = Collective::barrier}; }, second_ns);
  for (Rank rank = 0; rank < world.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (world.host_of[at] == host) continue;
    ASSERT_TRUE(next[at]) << "rank " << rank << " waits for the process that has ended";
    expect_lost(world, *next[at], host);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

class SimulatedEnd : public ::testing::TestWithParam<Collective> {};

TEST_P(SimulatedEnd, OfAProcessHarmsNoCallThatItHadCompleted) {
  for (const std::uint64_t seed : seeds(3)) {
    int turns = std::numeric_limits<int>::max();
    for (int end = 0; end <= ends_of_a_call; ++end) {
      HostsWorld world(seed);
      ASSERT_TRUE(world.start());
      if (seed % 2 == 0) (void)world.call([](Rank) { return Request{.collective = Collective::barrier}; }, limit_ns);
      const int host = static_cast<int>(world.random() % world.processes.size());
      const std::size_t count = std::vector<std::size_t>{1, 700, 40'000}[world.random() % 3];
      Called called(GetParam(), world.ranks, count, static_cast<Rank>(world.random() % world.made.size()));
      const int after = end == 0 ? turns
                                 : static_cast<int>(world.random() % 1'000'003 * static_cast<unsigned>(end) %
                                                    static_cast<unsigned>(turns));
      SCOPED_TRACE(fmt::format("TUTTI_TEST_SEED={}: {} of {} elements, host {} of {} ends after {} turns", seed,
                               name(GetParam()), count, host, world.processes.size(), after));
      const Outcome outcome = call_until_it_ends(world, called, host, after);
      if (end == 0) turns = outcome.turns;
      EXPECT_TRUE(end > 0 || outcome.completed);
      expect_right(world, called, host, outcome);
      if (HasFailure()) return;
      world.stop();
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Simulated, SimulatedEnd,
                         ::testing::Values(Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                           Collective::broadcast, Collective::all_to_all, Collective::reduce,
                                           Collective::gather, Collective::scatter, Collective::barrier,
                                           Collective::scan, Collective::ex_scan),
                         [](const auto& tested) { return std::string(name(tested.param)); });

/// What it had sent may be on its way for seconds.
TEST(SimulatedSlowNetwork, WhatAProcessHadSentBeforeItEndedArrives) {
  for (const std::uint64_t seed : seeds(4)) {
    SCOPED_TRACE(fmt::format("TUTTI_TEST_SEED={}", seed));
    HostsWorld world(seed);
    ASSERT_TRUE(world.start());
    world.system.options().buffer_bytes = 4'000'000;
    world.system.options().byte_ns = 2000;  // 4 Mbit/s
    const Rank from = 0;
    const int host = world.host_of[0];
    const auto other = std::ranges::find_if(world.host_of, [host](int each) { return each != host; });
    const auto to = static_cast<Rank>(other - world.host_of.begin());
    std::vector<std::byte> sent(1'000'000), got(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * i + seed);
    std::vector<std::unique_ptr<Batch>> batches;
    std::vector<Operation*> operations(world.made.size());
    for (const Rank rank : {from, to}) {
      batches.push_back(std::make_unique<Batch>(world.made[static_cast<std::size_t>(rank)]));
      batches.back()->add(PeerRequest{.send = rank == from,
                                      .data = rank == from ? sent.data() : got.data(),
                                      .bytes = sent.size(),
                                      .peer = rank == from ? to : from});
      batches.back()->enqueue();
      operations[static_cast<std::size_t>(rank)] = batches.back().get();
    }
    std::vector<Ended> ended(operations.size());
    const std::int64_t deadline = world.system.now_ns() + 120 * second_ns;
    while (!ended[0] && world.system.now_ns() < deadline) world.turn(operations, ended);
    ASSERT_TRUE(ended[0] && *ended[0]);
    const auto at = static_cast<std::size_t>(to);
    EXPECT_FALSE(ended[at]) << "nothing was on its way";
    world.dead.insert(host);
    world.system.end(host);
    operations[0] = nullptr;
    while (!ended[at] && world.system.now_ns() < deadline) world.turn(operations, ended);
    ASSERT_TRUE(ended[at]);
    ASSERT_TRUE(*ended[at]) << ended[at]->error().text();
    EXPECT_EQ(got, sent);
    batches.clear();
    world.stop();
  }
}

}  // namespace
}  // namespace tutti
