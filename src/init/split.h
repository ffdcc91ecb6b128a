// Makes communicators from a communicator: by color and key, or from a list of its ranks.
#pragma once

#include <optional>
#include <vector>

#include "call/held_operation.h"
#include "collective/point_to_point.h"
#include "init/group_watch.h"
#include "init/join.h"
#include "init/parent_exchange.h"

namespace tutti {

/// Waits for the name of a lost rank where what is known first is only that something failed.
///
/// The ranks that meet know each other by their places in the new communicator, and not all of them see who was lost:
/// where the root was in the lost rank's process, it is the root that they miss. Where one that waited has left because
/// of the loss, others may miss that one first.
class UnnamedLoss {
 public:
  explicit UnnamedLoss(System& system) : system_(system) {}

  /// A lost member may be the cause of this error, the first of its kind.
  void note(const Error& error) {
    error_ = error;
    noted_ns_ = system_.now_ns();
  }
  bool noted() const { return error_.has_value(); }

  /// Requires that an error was noted. `seen`: what is known of the members. Blocked while that may yet name one, and
  /// then, or when nobody is named in time, that error or the noted one.
  Result<Progress> name(const Result<void>& seen) const {
    if (!seen) return seen.error();
    if (system_.now_ns() - noted_ns_ >= limit_ns) return *error_;
    return Progress::blocked;
  }

 private:
  static constexpr std::int64_t limit_ns = 2'000'000'000;  // for the end of a member to be seen

  System& system_;
  std::optional<Error> error_;
  std::int64_t noted_ns_ = 0;
};

/// The common part of both: a place in the parent's order of calls, and the join at the end. Where the ranks exchange
/// over the parent all that they must know, the place is kept until the end.
class Regroup : public Operation {
 public:
  void enqueue() final { ticket_ = parent_->order().take_ticket(); }
  Result<Progress> advance() final;
  Communicator* communicator() final { return join_ && !exchange_ ? nullptr : parent_.get(); }
  WhileWaiting while_waiting() const final { return options_.while_waiting; }
  Result<void> poll_peers() final;
  std::string where() const final;
  Rank waits_for() const final { return under_way() != nullptr ? under_way()->waits_for() : -1; }
  std::int64_t poll_set(std::vector<PollItem>& items) const final;

  /// Valid after `done`; null for a rank that is in no new communicator.
  std::shared_ptr<Communicator> take() { return std::move(made_); }

 protected:
  Regroup(std::shared_ptr<Communicator> parent, JoinOptions options);
  ~Regroup() override;

  /// Exchanges id, rank and size of the new communicator over the parent. moved: call again; done: ready to join.
  /// Errors make the parent fail.
  virtual Result<Progress> arrange() = 0;
  /// Errors: why `arrange` has no sense any more.
  virtual Result<void> look() const;
  /// Errors: a rank that `arrange` waits for is gone.
  virtual Result<void> look_at_peers() { return under_way()->poll_peers(); }

  Communicator& parent() { return *parent_; }
  JoinOptions options_;
  Operation* current_ = nullptr;  ///< that `arrange` carries on
  bool outside_ = false;          ///< this rank is in no new communicator
  /// Set by `arrange` if all ranks of the parent join by it.
  std::optional<ParentExchange> exchange_;
  /// Why this rank does not join, which the others are told; set by `arrange`, or with an exchange by the join.
  std::optional<Error> trouble_;
  /// Without an exchange: over those that join; set by `arrange`.
  std::shared_ptr<GroupWatch> watch_;
  Result<void> watch(std::vector<Rank> members);
  /// The root is in this process.
  void meet_here(const UniqueId& id);

 private:
  Result<Progress> arrange_in_turn();
  Result<Progress> join_by_root();
  Result<Progress> join_by_exchange();
  Operation* under_way() const { return exchange_ ? exchange_->current() : join_ ? nullptr : current_; }
  void leave() {
    if (std::exchange(ticket_, 0) != 0) parent_->order().complete();
  }

  std::shared_ptr<Communicator> parent_;
  bool meets_here_ = false;
  std::uint64_t ticket_ = 0;  // 0: not enqueued, or already left
  std::optional<Join> join_;
  UnnamedLoss loss_;     // of a member, which the watch is about to name
  bool joined_ = false;  // with an exchange: as far as it goes
  std::shared_ptr<Communicator> made_;
};

/// An all-gather over the parent: colors and keys. Where the ranks share memory, they join by more of them. Otherwise
/// one more tells the ids that the first rank of each color made, where they meet.
class SplitByColor final : public Regroup {
 public:
  static constexpr int no_color = -1;
  SplitByColor(std::shared_ptr<Communicator> parent, int color, int key, JoinOptions options);
  ~SplitByColor() override;
  SplitByColor(const SplitByColor&) = delete;
  SplitByColor& operator=(const SplitByColor&) = delete;

 private:
  struct Choice {
    std::int32_t color;
    std::int32_t key;
    std::int32_t deterministic;
    SecretBytes secret;  ///< of the new communicator, if this rank is its first; names it
  };
  Result<Progress> arrange() override;
  Result<void> choose_places();
  void gather(const void* mine, void* all, std::size_t bytes);

  Choice mine_;
  std::vector<Choice> choices_;
  EncodedId id_;
  std::vector<char> ids_;
  Rank leader_ = 0;
  Request request_;
  HeldOperation call_;
  int stage_ = 0;
};

/// The first listed rank makes the id and sends it to the others, or why there is none. That works on a parent that has
/// failed because of a rank that is not listed, too.
class CreateGroup final : public Regroup {
 public:
  /// `ranks` are distinct ranks of the parent, this one among them.
  CreateGroup(std::shared_ptr<Communicator> parent, std::vector<Rank> ranks, JoinOptions options);
  ~CreateGroup() override { wipe(std::as_writable_bytes(std::span(word_.id))); }
  CreateGroup(const CreateGroup&) = delete;
  CreateGroup& operator=(const CreateGroup&) = delete;

 private:
  Result<Progress> arrange() override;

  struct Word {
    std::array<char, 128> id;
    std::uint32_t code;  ///< of the error; 0: there is none
    std::array<char, 512> what;
  };
  Result<void> look() const override;
  Result<void> look_at_peers() override;
  Result<void> begin();
  void make_id();
  void read_word();

  std::vector<Rank> ranks_;
  Word word_{};
  std::vector<PeerRequest> requests_;
  std::optional<PointToPoint> transfers_;
};

}  // namespace tutti
