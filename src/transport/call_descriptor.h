// A rank publishes one call descriptor to the other ranks of its host when it enters a call. For small calls the
// descriptor contains the data.
//
// Each rank has one ring of descriptors in its area. Only that rank writes the ring; all ranks read it
// (docs/decisions/0001).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "base/prefetch.h"

namespace tutti {

/// The arguments of a call on which all ranks must agree. Equal on all ranks of a correct program.
struct Signature {
  std::uint8_t collective = 0;
  std::uint8_t type = 0;
  std::uint8_t op = 0;
  std::uint8_t form = 0;  ///< of the collective: see Form
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  /// Compares two 64-bit words: every call takes this comparison.
  bool operator==(const Signature& other) const {
    using Words = std::array<std::uint64_t, 2>;
    return std::bit_cast<Words>(*this) == std::bit_cast<Words>(other);
  }
};

/// Identifies a call when ranks report it to one another.
struct CallMark {
  std::uint64_t sequence = 0;  ///< of the communicator's collective calls, from 1
  Signature signature;
};
static_assert(sizeof(CallMark) == 24);

/// The location of one of the caller's buffers. segment 0: not in a segment, only `address` is valid.
struct BufferDescriptor {
  static constexpr std::uint32_t nothing = 0xffff'ffff;  ///< value of `segment` for a buffer without bytes
  std::uint32_t segment = 0;
  std::uint32_t generation = 0;
  std::uint64_t offset = 0;
  std::uint64_t address = 0;
};

/// Summary of a rank's counts in a call with a count per rank; replaces the payload.
struct CountsDescriptor {
  std::uint64_t sent = 0;  ///< sum of hashes of what this rank sends, each over sender, receiver and number of elements
  std::uint64_t received = 0;  ///< as `sent`, of what it receives: added up over all ranks, both sums are equal
  std::uint64_t largest = 0;   ///< largest number of elements that it exchanges with one rank
};

/// The first cache line suffices for the smallest calls. The second one holds payload in calls that need no more of it.
struct alignas(64) CallDescriptor {
  std::atomic<std::uint64_t> sequence;  ///< of the call, from 1; written last
  Signature signature;
  std::uint64_t scalar = 0;  ///< pre-multiplied sum: this rank's factor
  std::byte small[32];       ///< the payload if it fits; or a CountsDescriptor
  BufferDescriptor input;    ///< second cache line on: for calls whose payload is not in the descriptor
  BufferDescriptor output;
  std::uint32_t retired = 0;  ///< the process's count of freed segments; a change means: look for mappings to drop
  std::uint8_t carries = 0;   ///< 1: a payload follows, although the call is not small
  std::uint8_t huge = 0;      ///< 1: the buffers lie on huge pages; only told where the way of the call depends on it
  std::uint8_t mappable = 0;  ///< 1: the rank still has the rights by which ranks map each other's segments
  std::uint8_t readable = 0;  ///< 1: and those by which they copy; only told where the way of the call may depend on it
};
static_assert(sizeof(CallDescriptor) == 128 && offsetof(CallDescriptor, input) == 64);
static_assert(sizeof(CountsDescriptor) <= sizeof(CallDescriptor::small));

/// Where the descriptors and payloads of all ranks of a host lie, as mapped in this process.
class DescriptorRings {
 public:
  /// `rings[r]` is the start of rank r's ring in its area: its descriptors, and then the payloads, of `payload_bytes`
  /// each.
  DescriptorRings(std::vector<std::byte*> rings, std::size_t payload_bytes);
  /// Size of one rank's ring.
  static std::size_t ring_bytes(std::size_t payload_bytes);

  int ranks() const { return static_cast<int>(rings_.size()); }
  std::size_t payload_bytes() const { return payload_bytes_; }
  /// Whether a payload of `bytes` lies in the descriptor itself.
  static bool is_compact(std::size_t bytes) { return bytes <= limits::line_bytes; }

  /// Descriptors of successive calls lie nearly a page apart: a peer's prefetcher, which stays within a page, would
  /// take the next one from its owner, who has claimed it.
  CallDescriptor& at(int rank, std::uint64_t sequence) const {
    const std::uint64_t place = sequence * place_step % limits::call_descriptors;
    return *reinterpret_cast<CallDescriptor*>(rings_[rank] + place * sizeof(CallDescriptor));
  }
  /// The call whose descriptor was in this place before.
  static std::uint64_t before(std::uint64_t sequence) {
    return sequence > limits::call_descriptors ? sequence - limits::call_descriptors : 0;
  }
  const std::byte* payload(int rank, std::uint64_t sequence, std::size_t bytes) const {
    assert(bytes <= payload_bytes_);
    const CallDescriptor& line = at(rank, sequence);
    if (bytes <= sizeof line.small) return line.small;
    if (is_compact(bytes)) return reinterpret_cast<const std::byte*>(&line) + limits::line_bytes;
    return rings_[rank] + descriptors_bytes + sequence % limits::call_payloads * payload_stride_;
  }

 private:
  static constexpr std::uint64_t place_step = 29;  // odd: each call of the ring has a place of its own
  static constexpr std::size_t descriptors_bytes = limits::call_descriptors * sizeof(CallDescriptor);

  std::vector<std::byte*> rings_;
  std::size_t payload_bytes_;
  std::size_t payload_stride_;
};

/// The rings of all ranks of a communicator on this host, as one rank sees them. Driven by one thread at a time.
///
/// Flow control: a rank writes descriptor k only after it has seen descriptor k − call_descriptors/2 of every peer, and
/// anything else that its peers read in this call only after it has seen k − call_payloads/2. So no rank overwrites
/// what is still to be read, and no extra counter is needed (docs/decisions/0001).
///
/// In the place of descriptor k, a peer may show only descriptor k − call_descriptors or k; anything else is an error
/// (remote).
class CallDescriptors {
 public:
  /// `rings`, `payload_bytes`: see DescriptorRings.
  /// `streamed_bytes`: payloads of this size or more are to be written with nontemporal stores.
  CallDescriptors(std::vector<std::byte*> rings, int rank, std::size_t payload_bytes,
                  std::size_t streamed_bytes = std::numeric_limits<std::size_t>::max());

  std::size_t payload_bytes() const { return rings_.payload_bytes(); }

  bool streams(std::size_t bytes) const { return bytes >= streamed_bytes_; }

  /// False: a peer is too far behind; ask again. Compares the signatures of the descriptors it passes. `compact`: the
  /// call publishes nothing but its descriptor. Errors: invalid_usage, remote.
  Result<bool> may_enter(std::uint64_t sequence, bool compact) {
    const std::uint64_t ahead = compact ? ahead_max : ahead_with_payload_max;
    if (sequence <= seen_by_all_ + ahead) return true;
    return catch_up(sequence, ahead);
  }

  /// The descriptor of call `sequence`, which must be the one after the last published and which may_enter has
  /// admitted. It still holds its content of call_descriptors calls ago: fill in every field that peers will read.
  CallDescriptor& begin(std::uint64_t sequence) {
    assert(sequence == published_ + 1 && sequence <= seen_by_all_ + ahead_max);
    payload_last_ = 0;
    return rings_.at(rank_, sequence);
  }
  /// The place of this rank's payload, of `bytes` ≤ payload_bytes(), in the call that has begun.
  std::byte* payload(std::uint64_t sequence, std::size_t bytes) {
    payload_last_ = bytes;
    return const_cast<std::byte*>(rings_.payload(rank_, sequence, bytes));
  }
  /// Publishes the descriptor. The caller rings the peers' doorbells.
  void publish(CallDescriptor& line, std::uint64_t sequence) {
    mine_[sequence % limits::call_descriptors] = line.signature;
    seen_[rank_] = published_ = sequence;
    line.sequence.store(sequence, std::memory_order_release);
    claim(sequence + 1);
  }

  /// Whether `open` finds the peer's descriptor of call `sequence`. For polling.
  bool has_arrived(int peer, std::uint64_t sequence) const {
    return rings_.at(peer, sequence).sequence.load(std::memory_order_acquire) == sequence;
  }
  /// The peer's descriptor of call `sequence`; nullptr until it is there. Stays unchanged until this rank has entered
  /// call_descriptors/2 more calls, and its payload for call_payloads/2. The descriptor of a call that this rank has
  /// not entered yet is returned uncompared. Errors: invalid_usage (the signature differs from this rank's own for the
  /// same call, or for an earlier call that was passed over; `peer` is set); remote.
  Result<const CallDescriptor*> open(int peer, std::uint64_t sequence) {
    const CallDescriptor& line = rings_.at(peer, sequence);
    // both cache lines are fetched at once
    __builtin_prefetch(reinterpret_cast<const std::byte*>(&line) + limits::line_bytes);
    const std::uint64_t found = line.sequence.load(std::memory_order_acquire);
    if (found != sequence) {
      if (found == DescriptorRings::before(sequence)) return nullptr;
      return jumped(peer, sequence, found);
    }
    if (sequence <= published_) {
      if (!(line.signature == mine_[sequence % limits::call_descriptors])) return differs(peer, sequence);
      if (seen_[peer] + 1 < sequence) return pass_over(peer, sequence);
      seen_[peer] = std::max(seen_[peer], sequence);
    }
    return &line;
  }
  /// Where the payload of a rank's call `sequence` is. To be read once `open` has returned its descriptor.
  const std::byte* payload(int rank, std::uint64_t sequence, std::size_t bytes) const {
    return rings_.payload(rank, sequence, bytes);
  }

  /// Compares all peers' new descriptors, up to the last call this rank has entered. Called while a rank waits in a
  /// call. Errors: invalid_usage, remote.
  Result<void> look();

  /// True when all peers' descriptors up to this rank's last published one have been seen.
  bool seen_all() const {
    return std::ranges::all_of(seen_, [this](std::uint64_t seen) { return seen >= published_; });
  }
  std::uint64_t published() const { return published_; }
  /// The rank that is most calls behind: it keeps this one from entering a call.
  int last_to_arrive() const;
  /// The number of the last call that a rank has published; 0: none. Any thread.
  std::uint64_t last_sequence(int rank) const;
  /// The last descriptor published by a rank, which may be ahead of this one. Sequence 0 where there is none, or where
  /// the rank shows a sequence number that does not belong in its ring.
  CallMark last(int rank) const;

  /// Each rank's call at `sequence`, where it is known, for a report of a mismatch. Only for the last
  /// call_descriptors/2 calls.
  std::vector<std::optional<Signature>> calls(std::uint64_t sequence) const;
  /// The call at which a mismatch was found; 0: none. It may be earlier than the last call entered.
  std::uint64_t differing() const { return differing_; }

 private:
  static constexpr std::uint64_t ahead_max = limits::call_descriptors / 2;
  static constexpr std::uint64_t ahead_with_payload_max = limits::call_payloads / 2;
  static constexpr std::size_t claim_bytes_max = 2048;  // of payload: as much as a core can fetch while it waits

  /// Prefetches this rank's descriptor of call `sequence` for writing, with as much payload as the call before. Peers
  /// hold these cache lines since they read them; fetching the lines back takes as long as waiting for the peers'
  /// answers.
  void claim(std::uint64_t sequence) {
    const auto* const line = reinterpret_cast<const std::byte*>(&rings_.at(rank_, sequence));
    prefetch_to_write(line);
    const std::size_t bytes = std::min(payload_last_, claim_bytes_max);
    if (streams(payload_last_)) return;  // what a cache holds, such stores would have to take out of it
    if (bytes <= sizeof(CallDescriptor::small)) return;
    if (DescriptorRings::is_compact(bytes)) return prefetch_to_write(line + limits::line_bytes);
    const std::byte* const begin = rings_.payload(rank_, sequence, bytes);
    for (std::size_t at = 0; at < bytes; at += limits::line_bytes) prefetch_to_write(begin + at);
  }
  Result<bool> catch_up(std::uint64_t sequence, std::uint64_t ahead);
  Result<const CallDescriptor*> pass_over(int peer, std::uint64_t sequence);
  Error differs(int peer, std::uint64_t sequence);
  static Error jumped(int peer, std::uint64_t sequence, std::uint64_t found);

  DescriptorRings rings_;
  int rank_;
  std::size_t streamed_bytes_;
  std::size_t payload_last_ = 0;
  std::vector<std::uint64_t> seen_;  // by rank: all its descriptors up to this one were read and compared
  std::uint64_t seen_by_all_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t differing_ = 0;
  // of this rank's last calls; in private memory, where no peer can write
  std::array<Signature, limits::call_descriptors> mine_{};
};

}  // namespace tutti
