// Exchanges among ranks that are in one communicator already.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/enumeration.h"
#include "bootstrap/bootstrap.h"
#include "call/held_operation.h"
#include "call/request.h"
#include "comm/communicator.h"

namespace tutti {

/// By all-gathers on that communicator, the parent, whose turn it must be. All ranks of the parent take part in each,
/// whether they contribute or not, until none needs another one. So several groups of ranks exchange at once, each
/// among itself, and a rank that fails tells those that wait for it.
class ParentExchange final : public Exchange {
 public:
  explicit ParentExchange(Communicator& parent) : parent_(parent) {}

  /// The ranks of the parent that exchange with this one, itself included; their places become those in `gathered`.
  void set_members(std::vector<Rank> members) { members_ = std::move(members); }

  void exchange(Blob mine) override;
  /// Errors: remote (a rank failed, with its error).
  Result<bool> advance() override;
  Result<void> look() override;
  void fail(const Error& error) override { failure_ = error; }
  const std::vector<Blob>& gathered() const override { return gathered_; }
  /// Where the ranks of the parent share memory, its doorbell is rung.
  std::int64_t poll_set(std::vector<PollItem>& items) const override { return call_ ? call_->poll_set(items) : 0; }

  /// This rank needs no more exchanges; with an error, it has failed.
  void end(const std::optional<Error>& error);
  /// Carries the exchanges on; done: no rank of the parent needs another one. Errors: those of all-gathers.
  Result<Progress> turn();

  /// The all-gather under way, or null.
  Operation* current() const { return call_ ? &*call_ : nullptr; }

 private:
  enum class State : std::uint32_t { idle, contributes, ended, failed, last = failed };
  static constexpr std::size_t block_bytes = 1024;  // usually enough for a rank's contribution
  struct Head {
    Unchecked<State> state;
    std::uint32_t bytes = 0;  ///< of its contribution, or of the text of its error
    std::uint32_t code = 0;   ///< of its error
  };
  static constexpr std::size_t first_bytes = block_bytes - sizeof(Head);

  void begin(std::size_t bytes_each);
  Result<void> read_heads();
  bool all_ended() const;
  void take();

  Communicator& parent_;
  std::vector<Rank> members_;
  Head mine_;
  Blob contribution_;
  std::vector<Head> heads_;     // of all ranks of the parent
  std::vector<Blob> blobs_;     // likewise
  std::size_t rest_bytes_ = 0;  // of the longest contribution, behind its first part
  bool in_rest_ = false;
  Request request_;
  Blob sent_, received_;
  HeldOperation call_;
  bool complete_ = true;
  std::vector<Blob> gathered_;
  std::optional<Error> failure_;
};

}  // namespace tutti
