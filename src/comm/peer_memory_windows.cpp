// Which memory of a rank its host's other ranks read without a copy through slots.

#include <utility>

#include "comm/given_up_rights.h"
#include "comm/peer_windows.h"

namespace tutti {

PeerMemoryWindows::PeerMemoryWindows(Process& process, const Membership& members, const CallMark& mark,
                                     const std::atomic<bool>& failed)
    : process_(process),
      members_(members),
      mark_(mark),
      windows_(process, members, failed),
      maps_(process.config.text("TUTTI_TRANSPORT") != "cma"),
      pulls_(members.pulls && process.config.text("TUTTI_TRANSPORT") != "mapped"),
      calls_(members.peers.size()) {
  const Machine& machine = members.machine;
  // What the slots of a pair of ranks occupy.
  const auto footprint = static_cast<double>(members.area->area.shape().slot_bytes) * members.area->area.shape().slots *
                         (members.area->area.shape().channels - 1);
  const auto slot = static_cast<double>(members.area->area.shape().slot_bytes);
  const auto message = machine.far.message_us_per_byte(slot, footprint, machine.far.streamed_bytes());
  const double copied = machine.read.us_per_byte(footprint) + message.write + message.read;
  spared_us_of_a_byte_ = copied - machine.pull.together.us_per_byte(footprint);
}

bool PeerMemoryWindows::pulling_pays(std::size_t bytes) const {
  if (!pulls_) return false;
  return !maps_ || static_cast<double>(bytes) * spared_us_of_a_byte_ > members_.machine.pull.call_us;
}

/// Once per call.
void PeerMemoryWindows::check_rights() const {
  if (std::exchange(looked_, mark_.sequence) == mark_.sequence) return;
  own_maps_ = still_maps(process_, members_);
  own_pulls_ = own_maps_ && pulls_ && still_pulls(process_, members_);
}

bool PeerMemoryWindows::reads(int peer) {
  if (members_.peers[static_cast<std::size_t>(peer)].same_process) return true;
  check_rights();
  return own_maps_ && own_pulls_ == pulls_;
}

std::optional<Offer> PeerMemoryWindows::describe(int peer, std::span<const std::byte> memory) const {
  Offer offer{.memory = {.address = reinterpret_cast<std::uint64_t>(memory.data())},
              .bytes = memory.size(),
              .retired = process_.memory.segments.retired()};
  const Peer& reader = members_.peers[static_cast<std::size_t>(peer)];
  if (reader.same_process) return offer;
  check_rights();
  if (!own_maps_ || has_given_up_mapping(reader)) return std::nullopt;
  const auto location = process_.memory.segments.find(memory.data(), memory.size());
  if (!location || !maps_) {
    const bool may = own_pulls_ && !has_given_up_pulling(reader);
    return may && pulling_pays(memory.size()) ? std::optional(offer) : std::nullopt;
  }
  offer.memory.segment = location->name.id;
  offer.memory.generation = location->name.generation;
  offer.memory.offset = location->offset;
  return offer;
}

Result<OfferedBlock> PeerMemoryWindows::find(int peer, const Offer& offer) {
  // Only between calls: what the peer has offered in this call may be in use on another channel.
  auto& call = calls_[static_cast<std::size_t>(peer)];
  if (std::exchange(call, mark_.sequence) != mark_.sequence) windows_.begin_collective(peer, offer.retired);
  const std::byte* const at = TUTTI_TRY(windows_.at(peer, offer.memory, offer.bytes));
  if (at != nullptr) return OfferedBlock{.at = {at, offer.bytes}};
  const ForeignProcess process = members_.peers[static_cast<std::size_t>(peer)].foreign_process();
  if (!pulls_ || process.pid <= 0)
    return Error{.code = Code::remote, .what = "a message names memory that this rank cannot read", .peer = peer};
  return OfferedBlock{.at = {reinterpret_cast<const std::byte*>(offer.memory.address), offer.bytes},
                      .process = process};
}

}  // namespace tutti
