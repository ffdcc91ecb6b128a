// What is new of ranks that are gone: for the peers, which have yet to hear it, and for this rank, which has yet to
// read it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "net/gossip.h"

namespace tutti {

class GoneNews {
 public:
  /// Of what this rank has found. False: it is known.
  bool add(const GoneRank& gone) {
    const bool added = gossip_.add(gone);
    news_ = news_ || added;
    return added;
  }
  /// Of what a peer has told. False: it is no gossip. Ranks that speak for themselves, at the other end of a
  /// connection, are not to be read here: what they said before they left may be on its way.
  bool merge(std::span<const std::byte> told, const std::function<bool(int rank)>& speaks_for_itself) {
    const auto gossip = Gossip::read(told);
    if (!gossip) return false;
    for (GoneRank& gone : gossip_.merge(*gossip)) {
      if (!speaks_for_itself(gone.rank)) unread_.push_back(std::move(gone));
      news_ = true;
    }
    return true;
  }

  /// All that is known, in one message to the peers; none: nothing is new since the last time.
  std::optional<Bytes> take_message() {
    if (!std::exchange(news_, false)) return std::nullopt;
    return gossip_.write();
  }
  /// What has been told since the last time.
  std::vector<GoneRank> take() { return std::exchange(unread_, {}); }
  /// Of how many ranks the end is known.
  std::size_t size() const { return gossip_.size(); }

 private:
  Gossip gossip_;
  bool news_ = false;
  std::vector<GoneRank> unread_;
};

}  // namespace tutti
