// Who has entered which call, and who knows it: call descriptors, and the barrier.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/proof/check_channel.h"

namespace tutti::proof {

class Entries {
 public:
  Entries(int ranks, int channels, int calls);

  /// The channel begins its call.
  void begin(const Channel& l, const Clocks& clocks) { began(l.call, l.rank, l.channel) = clocks.at(l.now)[l.rank]; }
  /// Its rank publishes its call descriptor.
  void publish(const Channel& l, Clocks& clocks);
  /// Where peers' memory is accessed, the call descriptors of all ranks are the barrier at the entry. False: not yet.
  bool enter(Channel& l, Clocks& clocks) const;
  /// False: `peer` has not published its descriptor of the call.
  bool open(const Channel& l, Rank peer, Clocks& clocks);
  bool has_opened(const Channel& l, Rank peer) const { return opened_[pair(l.rank, peer)] == l.call + 1; }
  /// At the end of a barrier.
  Result<void> all_known(const Channel& l, const Clocks& clocks);

 private:
  std::size_t pair(int call_or_rank, Rank rank) const { return static_cast<std::size_t>(call_or_rank) * ranks_ + rank; }
  std::uint32_t& began(int call, Rank rank, int channel) { return began_[pair(call, rank) * channels_ + channel]; }

  int ranks_;
  int channels_;                      // per rank
  std::vector<std::uint32_t> began_;  // when, by (call · ranks + rank) · channels + channel
  std::vector<Clocks::Row> lines_;    // of call descriptors, by call · ranks + rank; none until published
  std::vector<int> published_;        // by call: number of descriptors published
  std::vector<int> opened_;           // by rank · ranks + peer: the last call whose descriptor was opened, from 1
};

}  // namespace tutti::proof
