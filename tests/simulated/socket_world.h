// All ranks of a call, joined by simulated sockets and driven by one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "exec/run.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "support/connected.h"
#include "support/sim_system.h"
#include "transport/socket.h"

namespace tutti {

/// How ranks are joined.
struct SocketSetting {
  std::uint64_t seed = 1;
  int sockets = 1;
  int slots = 2;
  std::size_t slot_bytes = 64 * 1024;
  std::size_t piece_bytes = 20'000;
};

class SocketWorld {
 public:
  using Words = std::vector<std::int32_t>;

  SocketWorld(const Schedule& schedule, std::size_t count, bool in_place, const SocketSetting& setting)
      : schedule_(schedule),
        system_({.seed = setting.seed, .delay_ns_max = 50'000, .buffer_bytes = 50'000}),
        channels_(static_cast<std::size_t>(schedule.ranks())) {
    for (auto& channels : channels_) {
      channels.resize(2);
      for (Channel& channel : channels) channel.reserve(schedule.ranks());
    }
    for (std::size_t index = 0; index < 2; ++index)
      for (Rank a = 0; a < schedule.ranks(); ++a)
        for (Rank b = a + 1; b < schedule.ranks(); ++b) join(index, a, b, setting);
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) add(rank, count, in_place, setting);
  }

  void run() {
    std::vector<Run> runs;
    for (std::size_t rank = 0; rank < plans_.size(); ++rank)
      runs.emplace_back(plans_[rank], bindings_[rank], RunContext{.channels = channels_[rank], .system = &system_});
    std::vector<bool> done(runs.size());
    int idle = 0;
    while (!std::ranges::all_of(done, [](bool d) { return d; })) {
      ASSERT_LT(++idle, 10'000) << "stalls";
      for (std::size_t rank = 0; rank < runs.size(); ++rank) {
        if (done[rank]) continue;
        auto progress = runs[rank].advance();
        ASSERT_TRUE(progress) << "rank " << rank << ": " << progress.error().text();
        done[rank] = *progress == Progress::done;
        if (*progress != Progress::blocked) idle = 0;
        if (*progress == Progress::blocked) expect_interest(runs[rank]);
      }
      system_.yield();
    }
    for (const auto& channels : channels_)
      for (const Channel& channel : channels) EXPECT_TRUE(channel.unsent.empty());
  }

  /// As run, but `rank` ends: after the first `actions` of its plan, once nothing moves any more, or where that is all
  /// of them as soon as it is done. Whoever learns of it in an error closes its connections too. Which ranks succeeded.
  std::vector<bool> run_until_one_ends(Rank ending, std::size_t actions) {
    const auto victim = static_cast<std::size_t>(ending);
    const bool all = actions == plans_[victim].actions.size();
    plans_[victim].actions.resize(actions);
    std::vector<std::optional<Run>> runs;
    for (std::size_t rank = 0; rank < plans_.size(); ++rank)
      runs.emplace_back(std::in_place, plans_[rank], bindings_[rank],
                        RunContext{.channels = channels_[rank], .system = &system_});
    std::vector<bool> succeeded(runs.size());
    const auto leave = [&](std::size_t rank, bool success) {
      succeeded[rank] = success;
      runs[rank].reset();
      if (rank == victim || !success) channels_[rank].clear();
    };
    constexpr int quiet = 500;  // about 0.5 ms, ten times the longest way of a piece
    for (int idle = 0; std::ranges::any_of(runs, [](const auto& run) { return run.has_value(); }); ++idle) {
      if (idle == quiet && runs[victim]) leave(victim, false);
      if (idle > 5 * quiet) break;  // the caller finds those that wait
      for (std::size_t rank = 0; rank < runs.size(); ++rank) {
        if (!runs[rank]) continue;
        auto progress = runs[rank]->advance();
        if (progress && *progress == Progress::blocked) continue;
        if (!(rank == victim && !all)) idle = 0;
        if (!progress || *progress == Progress::done) {
          if (rank == victim && !all && progress) continue;  // it waits until nothing moves
          leave(rank, static_cast<bool>(progress));
        }
      }
      system_.yield();
    }
    for (std::size_t rank = 0; rank < runs.size(); ++rank)
      EXPECT_FALSE(runs[rank]) << "rank " << rank << " waits for ever";
    return succeeded;
  }
  std::size_t actions_of(Rank rank) const { return plans_[static_cast<std::size_t>(rank)].actions.size(); }

  void check(Rank rank) const {
    if (schedule_.collective() == Collective::barrier) return;
    const auto groups =
        static_cast<std::size_t>(output_groups(schedule_.collective(), schedule_.ranks(), rank, schedule_.root()));
    const std::size_t count = bindings_[0].split.count();
    for (std::size_t group = 0; group < groups; ++group)
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(output(rank)[group * count + i], expected(rank, group, i)) << "rank " << rank << " at " << i;
  }

 private:
  /// What a blocked run sleeps on must be able to end the sleep.
  void expect_interest(const Run& run) const {
    std::vector<PollItem> items;
    run.poll_set(items);
    EXPECT_FALSE(items.empty()) << "blocked, and nothing to wait for";
  }

  void join(std::size_t index, Rank a, Rank b, const SocketSetting& setting) {
    auto ends = testing::connected(system_, "10.0.0.2", setting.sockets);
    for (const auto& [mine, peer, sockets] : {std::tuple{a, b, &ends.callers}, {b, a, &ends.callees}}) {
      auto link = std::make_shared<SocketLink>(system_, std::move(*sockets),
                                               SocketLink::Ends{.rank = mine,
                                                                .peer = peer,
                                                                .channel = static_cast<int>(index),
                                                                .peer_name = fmt::format("rank {}", peer)},
                                               setting.piece_bytes);
      Channel& channel = channels_[static_cast<std::size_t>(mine)][index];
      channel.senders[static_cast<std::size_t>(peer)] =
          std::make_unique<SocketSender>(link, setting.slots, setting.slot_bytes);
      channel.receivers[static_cast<std::size_t>(peer)] = std::make_unique<SocketReceiver>(link, setting.slot_bytes);
    }
  }

  void add(Rank rank, std::size_t count, bool in_place, const SocketSetting& setting) {
    const auto groups_in =
        static_cast<std::size_t>(input_groups(schedule_.collective(), schedule_.ranks(), rank, schedule_.root()));
    const auto groups_out =
        static_cast<std::size_t>(output_groups(schedule_.collective(), schedule_.ranks(), rank, schedule_.root()));
    Words& input = inputs_.emplace_back(groups_in * count);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = value(rank, i);
    Words& output = outputs_.emplace_back(std::max(groups_out, groups_in) * count);
    std::byte* out = reinterpret_cast<std::byte*>(output.data());
    const std::byte* in = reinterpret_cast<const std::byte*>(input.data());
    const auto shared = in_place ? shared_groups(rank, static_cast<int>(groups_in)) : std::nullopt;
    if (shared) {  // one of its groups is a group of the input
      const auto [group_in, group_out] = *shared;
      const std::size_t least = std::min(group_in, group_out);
      std::ranges::copy(input, output.begin() + static_cast<std::ptrdiff_t>((group_out - least) * count));
      in = reinterpret_cast<const std::byte*>(output.data() + (group_out - least) * count);
      out = reinterpret_cast<std::byte*>(output.data() + (group_in - least) * count);
    }
    plans_.push_back(fuse(lower(schedule_, rank, Access::slots), setting.slots));
    Words& scratch = scratches_.emplace_back(static_cast<std::size_t>(plans_.back().scratch_groups) * count + 1);
    bindings_.push_back({.input = in,
                         .output = out,
                         .scratch = reinterpret_cast<std::byte*>(scratch.data()),
                         .type = DataType::int32,
                         .split = Split(count, sizeof(std::int32_t), plans_.back().parts),
                         .sequence = 1});
    bindings_.back().split.tile(setting.slot_bytes, plans_.back().items_max);
  }

  /// The groups of input and output that are one in place, where there are such.
  std::optional<std::pair<std::size_t, std::size_t>> shared_groups(Rank rank, int groups_in) const {
    for (int group = 0; group < groups_in; ++group) {
      const int to = in_place_block(schedule_.collective(), schedule_.ranks(), 1, rank, schedule_.root(), group);
      if (to >= 0) return std::pair(static_cast<std::size_t>(group), static_cast<std::size_t>(to));
    }
    return std::nullopt;
  }

  static std::int32_t value(Rank rank, std::size_t i) { return 100'000 * (rank + 1) + static_cast<std::int32_t>(i); }
  std::span<const std::int32_t> output(Rank rank) const {
    const Binding& binding = bindings_[static_cast<std::size_t>(rank)];
    const auto groups = output_groups(schedule_.collective(), schedule_.ranks(), rank, schedule_.root());
    return {reinterpret_cast<const std::int32_t*>(binding.output),
            static_cast<std::size_t>(groups) * binding.split.count()};
  }

  std::int32_t expected(Rank rank, std::size_t group, std::size_t i) const {
    const std::size_t count = bindings_[0].split.count();
    switch (schedule_.collective()) {
      case Collective::all_gather:
      case Collective::gather: return value(static_cast<Rank>(group), i);
      case Collective::scatter: return value(schedule_.root(), static_cast<std::size_t>(rank) * count + i);
      case Collective::all_to_all: return value(static_cast<Rank>(group), static_cast<std::size_t>(rank) * count + i);
      case Collective::broadcast: return value(schedule_.root(), i);
      default: break;
    }
    const std::size_t from = schedule_.collective() == Collective::reduce_scatter ? rank * count + i : i;
    std::int32_t sum = 0;
    Rank others = schedule_.ranks();
    if (schedule_.collective() == Collective::scan) others = rank + 1;
    if (schedule_.collective() == Collective::ex_scan) others = rank;
    for (Rank other = 0; other < others; ++other) sum += value(other, from);
    return sum;
  }

  const Schedule& schedule_;
  SimSystem system_;
  std::vector<std::vector<Channel>> channels_;  // by rank
  std::vector<Plan> plans_;
  std::vector<Words> inputs_, outputs_, scratches_;
  std::vector<Binding> bindings_;
};

}  // namespace tutti
