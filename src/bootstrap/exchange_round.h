// A rank's exchange with all others: its own blob, whether the answer is here, and what it gathered.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap_messages.h"
#include "net/wire.h"

namespace tutti::bootstrap {

/// One after another; the number of each is part of its messages. No sockets and no clock here.
class ExchangeRound {
 public:
  /// Requires that none is under way.
  void begin(Blob mine) {
    mine_ = std::move(mine);
    under_way_ = true;
  }
  void set_limit(std::int64_t limit_ns) { limit_ns_ = limit_ns; }
  std::shared_ptr<const Bytes> contribution(int rank) const {
    return frame(FrameKind::contribute, write_contribution(rank, number_, mine_));
  }
  /// Errors: remote (malformed, or of another exchange).
  Result<void> take_answer(const Bytes& body, int ranks, std::size_t blob_bytes_max) {
    gathered_ = TUTTI_TRY(read_gathered(body, number_, ranks, blob_bytes_max));
    answered_ = true;
    return {};
  }
  /// The ranks below have the answer too.
  void complete() {
    under_way_ = answered_ = false;
    ++number_;
  }

  bool under_way() const { return under_way_; }
  bool answered() const { return answered_; }
  bool awaits_answer() const { return under_way_ && !answered_; }
  std::uint32_t number() const { return number_; }
  std::int64_t limit_ns() const { return limit_ns_; }
  /// Of the last answer, by rank.
  const std::vector<Blob>& gathered() const { return gathered_; }

 private:
  std::uint32_t number_ = 0;
  bool under_way_ = false;
  bool answered_ = false;  ///< the ranks below must confirm that they have the answer too
  std::int64_t limit_ns_ = 0;
  Blob mine_;
  std::vector<Blob> gathered_;
};

}  // namespace tutti::bootstrap
