// Ranks that exchange messages by kernels, each in a launch of its own: their messages, areas and links.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/area.h"
#include "support/fiber_block.h"
#include "support/kernel_world.h"
#include "support/random.h"

namespace tutti::testing {

/// Launches of sends and receives on fibers, at the same time. False: nobody could go on, and they were left behind.
bool run_messages_on_fibers(std::span<const device::Call* const> calls, const FiberOptions& options,
                            device::Fault fault);

class MessagesWorld {
 public:
  /// Up to three messages from each rank to each other, of which some are empty and some longer than all slots.
  MessagesWorld(int ranks, std::uint64_t seed) : ranks_(ranks), random_(seed) {
    area_ = {.ranks = static_cast<std::uint32_t>(ranks),
             .channels = static_cast<std::uint32_t>(random_.between(1, 3)),
             .slots = static_cast<std::uint32_t>(random_.between(1, 3)),
             .slot_bytes = device::message_header_bytes + 64};
    messages_.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) areas_.push_back(std::make_unique<AlignedBytes>(area_.bytes()));
    for (int rank = 0; rank < ranks; ++rank) make_call(static_cast<std::uint32_t>(rank));
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to)
        for (int i = random_.below(4); from != to && i > 0; --i)
          add(from, to, random_.chance(20) ? 0 : static_cast<std::uint64_t>(random_.below(1500)));
  }

  void add(int from, int to, std::uint64_t bytes) {
    Pair pair{.sent = std::make_unique<AlignedBytes>(bytes, static_cast<std::size_t>(random_.below(20))),
              .received = std::make_unique<AlignedBytes>(bytes, static_cast<std::size_t>(random_.below(20)))};
    for (std::uint64_t at = 0; at < bytes; ++at) pair.sent->data()[at] = static_cast<std::byte>(random_.next());
    std::memset(pair.received->data(), 0xa5, bytes);
    of(from).push_back({.data = pair.sent->data(), .bytes = bytes, .peer = static_cast<std::uint16_t>(to), .send = 1});
    of(to).push_back({.data = pair.received->data(), .bytes = bytes, .peer = static_cast<std::uint16_t>(from)});
    pairs_.push_back(std::move(pair));
  }

  void clear() {
    for (auto& messages : messages_) messages.clear();
    pairs_.clear();
  }

  std::vector<device::Message>& of(int rank) { return messages_[static_cast<std::size_t>(rank)]; }
  const device::Area& area() const { return area_; }
  device::Call& call(int rank) { return calls_[static_cast<std::size_t>(rank)]; }
  void abort() { abort_ = 1; }

  /// The calls of these ranks, with the messages that have been added.
  std::vector<const device::Call*> calls_of(std::span<const int> who) {
    std::vector<const device::Call*> calls;
    for (const int rank : who) {
      auto& messages = of(rank);
      std::ranges::stable_sort(messages, {}, &device::Message::queue);
      device::Call& one = call(rank);
      one.message_count = static_cast<std::uint32_t>(messages.size());
      one.messages = nullptr;
      if (random_.chance(50) && messages.size() <= std::size(one.few_messages))
        std::ranges::copy(messages, one.few_messages);
      else
        one.messages = messages.data();
      calls.push_back(&one);
    }
    return calls;
  }

  /// The launches of these ranks; false: one could not end.
  bool run(std::span<const int> who, std::uint64_t seed, device::Fault fault = device::Fault::none) {
    bool stuck = false;
    const std::vector<const device::Call*> calls = calls_of(who);
    const FiberOptions options{.threads = 2, .seed = seed, .on_deadlock = [&] {
                                 stuck = true;
                                 abort();
                               }};
    return run_messages_on_fibers(calls, options, fault) && !stuck;
  }
  bool run(std::uint64_t seed, device::Fault fault = device::Fault::none) {
    std::vector<int> all;
    for (int rank = 0; rank < ranks_; ++rank) all.push_back(rank);
    return run(all, seed, fault);
  }

  /// "" or what is wrong.
  std::string compare() const {
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      if (std::memcmp(pairs_[i].sent->data(), pairs_[i].received->data(), pairs_[i].sent->size()) != 0)
        return "message " + std::to_string(i) + " of " + std::to_string(pairs_[i].sent->size()) + " bytes differs";
    return "";
  }
  /// The messages have not been received yet.
  void forget() {
    for (const Pair& pair : pairs_) std::memset(pair.received->data(), 0xa5, pair.received->size());
  }

  /// The record of the rank that says most.
  const device::ErrorRecord& record(int rank) const {
    const auto& records = errors_[static_cast<std::size_t>(rank)];
    return *std::ranges::max_element(records, {}, &device::ErrorRecord::state);
  }

 private:
  struct Pair {
    std::unique_ptr<AlignedBytes> sent, received;
  };

  void make_call(std::uint32_t rank) {
    auto& links = links_.emplace_back(area_.links());
    auto& errors = errors_.emplace_back(area_.channels);
    for (std::uint32_t channel = 0; channel < area_.channels; ++channel)
      for (std::uint32_t peer = 0; peer < area_.ranks; ++peer)
        if (peer != rank)
          links[area_.index(channel, peer)] =
              area_.link(channel, rank, peer, areas_[rank]->data(), areas_[peer]->data());
    device::Call& call = calls_.emplace_back();
    call.abort = &abort_;
    call.slots = area_.slots;
    call.slot_bytes = area_.slot_bytes;
    call.ranks = area_.ranks;
    call.local_ranks = 1;
    call.channels = area_.channels;
    call.synchronises = 1;
    call.local[0] = {.links = links.data(), .errors = errors.data(), .rank = static_cast<std::uint16_t>(rank)};
  }

  int ranks_;
  Random random_;
  device::Area area_;
  std::vector<std::vector<device::Message>> messages_;  // by rank
  std::vector<Pair> pairs_;
  std::vector<std::unique_ptr<AlignedBytes>> areas_;
  std::vector<std::vector<device::Link>> links_;
  std::vector<std::vector<device::ErrorRecord>> errors_;
  std::vector<device::Call> calls_;
  std::uint32_t abort_ = 0;
};

}  // namespace tutti::testing
