// What a rank tells the other ranks of its host on entering a call; for small calls the data itself.
//
// One ring of lines per rank, in its shared area, written by it alone and read by all (docs/decisions/0001).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "base/prefetch.h"

namespace tutti {

/// Who calls what. Equal on all ranks of a correct program.
struct Signature {
  std::uint8_t collective = 0;
  std::uint8_t type = 0;
  std::uint8_t op = 0;
  std::uint8_t form = 0;  ///< of the collective: see Form
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  /// As two words: this is compared on the way of every call.
  bool operator==(const Signature& other) const {
    using Words = std::array<std::uint64_t, 2>;
    return std::bit_cast<Words>(*this) == std::bit_cast<Words>(other);
  }
};

/// A call as ranks name it to one another.
struct CallMark {
  std::uint64_t sequence = 0;  ///< of the communicator's collective calls, from 1
  Signature signature;
};
static_assert(sizeof(CallMark) == 24);

/// Where one of the caller's buffers lies. segment 0: not in a segment, `address` is all there is.
struct BufferDescriptor {
  static constexpr std::uint32_t nothing = 0xffff'ffff;  ///< in the place of a segment: a buffer without bytes
  std::uint32_t segment = 0;
  std::uint32_t generation = 0;
  std::uint64_t offset = 0;
  std::uint64_t address = 0;
};

/// What a call with a count per rank says of its counts; in the place of a payload.
struct CountsDescriptor {
  std::uint64_t sent =
      0;  ///< sum of hashes of what this rank sends, each with sender, receiver and number of elements;
  std::uint64_t received = 0;  ///<   and of what it receives: over all ranks, both sums are the same
  std::uint64_t largest = 0;   ///< number of elements that it exchanges with one rank
};

/// The first cache line suffices for the smallest calls; the second one carries payload where a call needs no more.
struct alignas(64) CallDescriptor {
  std::atomic<std::uint64_t> sequence;  ///< of the call, from 1; written last
  Signature signature;
  std::uint64_t scalar = 0;  ///< pre-multiplied sum: this rank's factor
  std::byte small[32];       ///< payload, if no more than this; or a CountsDescriptor
  BufferDescriptor input;    ///< second line on: calls whose payload does not lie here
  BufferDescriptor output;
  std::uint32_t retired = 0;  ///< the process's count of freed segments: changed → look which
  std::uint32_t carries = 0;  ///< 1: a payload follows, although the call is not small
};
static_assert(sizeof(CallDescriptor) == 128 && offsetof(CallDescriptor, input) == 64);
static_assert(sizeof(CountsDescriptor) <= sizeof(CallDescriptor::small));

/// All lines of a communicator's host, as one rank sees them. Driven by one thread at a time.
///
/// Flow: a rank writes line k only when every peer's line k − call_descriptors/2 has been seen here; so nobody
/// overwrites a line that is still to be read, without a counter more (docs/decisions/0001).
///
/// What a peer may show in the place of line k is line k − call_descriptors or line k: anything else is an error
/// (remote).
class CallDescriptors {
 public:
  /// `rings[r]` is the start of rank r's ring in its area, as mapped here; `payload_bytes` of each line follow it.
  CallDescriptors(std::vector<std::byte*> rings, int rank, std::size_t payload_bytes);

  std::size_t payload_bytes() const { return payload_bytes_; }

  /// False: a peer is too far behind, ask again. Compares signatures of lines it passes. Errors: invalid_usage, remote.
  Result<bool> may_enter(std::uint64_t sequence) {
    if (sequence <= seen_by_all_ + ahead_max) return true;
    return catch_up(sequence);
  }

  /// The line of call `sequence`, the one after the last published, once it may be entered; and room for its payload
  /// (`bytes` ≤ payload_bytes()). The line holds what it held call_descriptors calls ago: fill in what peers will read.
  CallDescriptor& begin(std::uint64_t sequence) {
    assert(sequence == published_ + 1 && sequence <= seen_by_all_ + ahead_max);
    return at(rank_, sequence);
  }
  std::byte* payload(CallDescriptor& line, std::size_t bytes) {
    payload_last_ = bytes;
    return const_cast<std::byte*>(std::as_const(*this).payload(line, bytes));
  }
  /// Publishes it. The caller rings the peers' doorbells.
  void publish(CallDescriptor& line, std::uint64_t sequence) {
    mine_[sequence % limits::call_descriptors] = line.signature;
    seen_[rank_] = published_ = sequence;
    line.sequence.store(sequence, std::memory_order_release);
    claim(sequence + 1);
  }

  /// The peer's line of call `sequence`; nullptr until it is there. Stays as it is until this rank has entered
  /// call_descriptors/2 more calls. Errors: invalid_usage (its signature differs from that of our own line of the same
  /// call, or of one before that was passed over; peer set); remote. Of a call this rank has not entered yet, the line
  /// is given uncompared.
  Result<const CallDescriptor*> open(int peer, std::uint64_t sequence) {
    const CallDescriptor& line = at(peer, sequence);
    __builtin_prefetch(reinterpret_cast<const std::byte*>(&line) + limits::line_bytes);  // both travel at once
    const std::uint64_t found = line.sequence.load(std::memory_order_acquire);
    if (found != sequence) {
      if (found == before(sequence)) return nullptr;
      return jumped(peer, sequence, found);
    }
    if (sequence <= published_) {
      if (!(line.signature == mine_[sequence % limits::call_descriptors])) return differs(peer, sequence);
      if (seen_[peer] + 1 < sequence) return pass_over(peer, sequence);
      seen_[peer] = std::max(seen_[peer], sequence);
    }
    return &line;
  }
  const std::byte* payload(const CallDescriptor& line, std::size_t bytes) const {
    assert(bytes <= payload_bytes_);
    if (bytes <= sizeof line.small) return line.small;
    const auto* const begin = reinterpret_cast<const std::byte*>(&line);
    return begin + (bytes <= limits::line_bytes ? limits::line_bytes : sizeof line);
  }

  /// Compares what has come of all peers since, up to the last call this rank has entered. For whoever waits in a call.
  /// Errors: invalid_usage, remote.
  Result<void> look();

  /// All peers' lines up to the last published one were seen.
  bool seen_all() const {
    return std::ranges::all_of(seen_, [this](std::uint64_t seen) { return seen >= published_; });
  }
  std::uint64_t published() const { return published_; }
  /// The last line that is there of a rank, which may be ahead; number 0 where there is none, or where it shows
  /// sequence numbers that are none of its ring.
  CallMark last(int rank) const;

  /// What each rank calls at `sequence`, where it is known: for a report of a mismatch. Only of the last
  /// call_descriptors/2 calls.
  std::vector<std::optional<Signature>> calls(std::uint64_t sequence) const;
  /// The call at which a mismatch was found; 0 while there is none. It can lie before the last one entered.
  std::uint64_t differing() const { return differing_; }

  /// Bytes of one rank's ring.
  static std::size_t ring_bytes(std::size_t payload_bytes);

 private:
  static constexpr std::uint64_t ahead_max = limits::call_descriptors / 2;
  static constexpr std::size_t claim_bytes_max = 2048;  // of payload: what a core can ask for while it waits

  CallDescriptor& at(int rank, std::uint64_t sequence) const {
    return *reinterpret_cast<CallDescriptor*>(rings_[rank] + sequence % limits::call_descriptors * line_bytes_);
  }
  /// The call whose line lay there before.
  static std::uint64_t before(std::uint64_t sequence) {
    return sequence > limits::call_descriptors ? sequence - limits::call_descriptors : 0;
  }
  /// Asks for this rank's line of call `sequence`, and for as much of its payload as the last one had, to be written:
  /// peers have them in their caches since they read them, and to get them back takes as long as they take to answer.
  void claim(std::uint64_t sequence) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&at(rank_, sequence));
    const std::size_t payload = std::min(payload_last_, claim_bytes_max);
    const std::size_t bytes =
        payload <= sizeof(CallDescriptor::small) ? limits::line_bytes : sizeof(CallDescriptor) + payload;
    for (std::size_t at = 0; at < bytes; at += limits::line_bytes) prefetch_to_write(begin + at);
  }
  Result<bool> catch_up(std::uint64_t sequence);
  Result<const CallDescriptor*> pass_over(int peer, std::uint64_t sequence);
  Error differs(int peer, std::uint64_t sequence);
  static Error jumped(int peer, std::uint64_t sequence, std::uint64_t found);

  std::vector<std::byte*> rings_;
  int rank_;
  std::size_t payload_bytes_;
  std::size_t line_bytes_;
  std::size_t payload_last_ = 0;
  std::vector<std::uint64_t> seen_;  // by rank: all its lines up to this one were read and compared
  std::uint64_t seen_by_all_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t differing_ = 0;
  std::array<Signature, limits::call_descriptors> mine_{};  // of the last calls; nobody else can write here
};

}  // namespace tutti
