// Ranks of a call with a count per rank: their blocks, areas and links.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/area.h"
#include "support/kernel_world.h"
#include "support/random.h"

namespace tutti::testing {

/// All ranks of one call in one launch, as if each were in one of its own.
class ExchangeWorld {
 public:
  ExchangeWorld(int ranks, std::uint64_t seed) : ranks_(ranks), random_(seed) {
    const auto n = static_cast<std::uint32_t>(ranks);
    area_ = {.ranks = n,
             .channels = static_cast<std::uint32_t>(random_.between(1, 3)),
             .slots = static_cast<std::uint32_t>(random_.between(1, 3)),
             .slot_bytes = 64,
             .inbox_bytes = 48};
    transfers_.resize(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks));
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to) {
        const std::uint64_t bytes = random_.chance(20) ? 0 : static_cast<std::uint64_t>(random_.below(700));
        of(from, to).sent = of(from, to).all_sent = bytes;
        of(to, from).received = of(to, from).all_received = bytes;
      }
    for (int rank = 0; rank < ranks; ++rank) lay_out(rank);
    make_call();
  }

  device::Transfer& of(int rank, int peer) {
    return transfers_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(ranks_) +
                      static_cast<std::size_t>(peer)];
  }
  const device::ErrorRecord& record(int rank) const { return errors_[static_cast<std::size_t>(rank)][0]; }
  device::Call& call() { return call_; }

  Launch launch() const { return {.body = device::Body::run_plan, .type = DataType::uint8, .call = &call_}; }
  void abort() { abort_ = 1; }

  /// "" or what is wrong.
  std::string compare() {
    for (int from = 0; from < ranks_; ++from)
      for (int to = 0; to < ranks_; ++to) {
        const device::Transfer &sender = of(from, to), &receiver = of(to, from);
        if (std::memcmp(inputs_[static_cast<std::size_t>(from)]->data() + sender.from,
                        outputs_[static_cast<std::size_t>(to)]->data() + receiver.to, sender.sent) != 0)
          return "what " + std::to_string(from) + " sent to " + std::to_string(to) + " differs";
      }
    return "";
  }

 private:
  /// Blocks with gaps between them.
  void lay_out(int rank) {
    std::uint64_t input = 0, output = 0;
    for (int peer = 0; peer < ranks_; ++peer) {
      device::Transfer& transfer = of(rank, peer);
      transfer.from = input + static_cast<std::uint64_t>(random_.below(20));
      transfer.to = output + static_cast<std::uint64_t>(random_.below(20));
      input = transfer.from + transfer.sent;
      output = transfer.to + transfer.received;
    }
    inputs_.push_back(std::make_unique<AlignedBytes>(input));
    outputs_.push_back(std::make_unique<AlignedBytes>(output));
    for (std::uint64_t at = 0; at < input; ++at) inputs_.back()->data()[at] = static_cast<std::byte>(random_.next());
    std::memset(outputs_.back()->data(), 0xa5, output);
  }

  void make_call() {
    for (std::uint32_t rank = 0; rank < area_.ranks; ++rank)
      areas_.push_back(std::make_unique<AlignedBytes>(area_.bytes()));
    call_.abort = &abort_;
    call_.slots = area_.slots;
    call_.slot_bytes = area_.slot_bytes;
    call_.inbox_bytes = area_.inbox_bytes;
    call_.ranks = call_.local_ranks = area_.ranks;
    call_.channels = area_.channels;
    call_.synchronises = 1;
    call_.signature = 77;
    call_.transfers = transfers_.data();
    links_.resize(area_.ranks);
    errors_.resize(area_.ranks);
    for (std::uint32_t rank = 0; rank < area_.ranks; ++rank) {
      links_[rank].resize(area_.links());
      errors_[rank].resize(area_.channels);
      for (std::uint32_t channel = 0; channel < area_.channels; ++channel)
        for (std::uint32_t peer = 0; peer < area_.ranks; ++peer)
          if (peer != rank)
            links_[rank][area_.index(channel, peer)] =
                area_.link(channel, rank, peer, areas_[rank]->data(), areas_[peer]->data());
      call_.local[rank] = {.links = links_[rank].data(),
                           .errors = errors_[rank].data(),
                           .input = inputs_[rank]->data(),
                           .output = outputs_[rank]->data(),
                           .rank = static_cast<std::uint16_t>(rank)};
    }
  }

  int ranks_;
  Random random_;
  device::Area area_;
  std::vector<device::Transfer> transfers_;
  std::vector<std::unique_ptr<AlignedBytes>> inputs_, outputs_, areas_;
  std::vector<std::vector<device::Link>> links_;
  std::vector<std::vector<device::ErrorRecord>> errors_;
  std::uint32_t abort_ = 0;
  device::Call call_{};
};

}  // namespace tutti::testing
