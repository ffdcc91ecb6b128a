// Blocks that ranks of a host read from each other's buffers: who may read what, and when it may change.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/proof/check_messages.h"

namespace tutti::proof {

class Offers {
 public:
  /// `hosts`: by rank; empty: no blocks are offered. `multiplied`: see Machine.
  Offers(std::vector<int> hosts, bool multiplied, const Channels& channels, int ranks);

  /// Offers what the pass has stored in messages. After the pass, when its own destinations hold their blocks.
  Result<void> offer(const Channel& l, const Action& a, Messages& messages);
  /// False while a peer is yet to read a block that the pass changes.
  bool may_change(const Channel& l, const Action& a, Messages& messages, Clocks& clocks);
  bool all_read(const Channel& l, Messages& messages, Clocks& clocks);

 private:
  /// A block that another rank may read in this rank's buffer.
  struct Offered {
    Rank peer = 0;
    std::uint32_t message = 0;
    Cell* cell = nullptr;
  };
  bool offers(const Channel& l, const Place& p, std::size_t place) const;
  bool offers_what_it_stores(const Channel& l, const Slots::Item& item) const;
  std::vector<Offered>& of(const Channel& l) {
    return offered_[static_cast<std::size_t>(l.rank) * channels_per_rank_ + l.channel];
  }

  std::vector<int> hosts_;
  bool multiplied_;
  int channels_per_rank_;
  std::vector<std::vector<Offered>> offered_;  // by rank and channel: not known to be read
};

}  // namespace tutti::proof
