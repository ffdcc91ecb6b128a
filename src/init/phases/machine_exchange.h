// Hosts that are not like rank 0's: which there are, and how rank 0 learns what they are made of.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "init/peer_info.h"

namespace tutti {

/// One rank of each host speaks for it: the first with a GPU, as only such ranks ask the GPUs' driver, else the first.
/// Of each kind of machine that differs from rank 0's, the first rank that speaks for one sends its text, in as many
/// exchanges as the longest text needs; where all hosts are alike, there is none. All ranks have the same greetings, so
/// all agree on who sends.
class MachineExchange {
 public:
  static constexpr std::size_t text_bytes_max = std::size_t{1} << 20;  ///< of one machine; a larger one is not told
  static constexpr std::size_t machines_max = 64;                      ///< further kinds are not told

  /// `hosts`: by rank, the first rank of its host.
  MachineExchange(std::span<const PeerInfo> infos, std::span<const int> hosts);

  /// Whether another exchange is needed.
  bool more() const { return sent_bytes_ < longest_; }
  /// What this rank contributes to the next exchange; most ranks: nothing.
  Blob part(Rank rank, const std::string& own_text) const;
  /// After that exchange, on every rank; rank 0 keeps the texts. Errors: remote (another length than was announced).
  Result<void> take(Rank rank, std::span<const Blob> gathered);

  /// For rank 0, at the end: by rank, the machine of its host; null: unknown. Errors: remote (not a machine, or not the
  /// one that was announced).
  Result<std::vector<SharedMachine>> machines(const SharedMachine& own) const;
  std::size_t told() const { return told_.size(); }

 private:
  struct Told {
    Rank by;
    Digest digest;
    std::size_t bytes;
    std::string text = {};
  };
  Result<void> keep(std::span<const Blob> gathered);
  std::size_t next_bytes(const Told& told) const;

  std::vector<Digest> digests_;  ///< by rank: of its host's machine
  Digest own_digest_{};          ///< of rank 0's machine
  std::vector<Told> told_;
  std::size_t sent_bytes_ = 0, longest_ = 0;
};

}  // namespace tutti
