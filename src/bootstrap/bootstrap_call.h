// How a rank connects to a listener of the start: the root, or the rank's parent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_messages.h"
#include "net/handshake.h"
#include "net/wire.h"

namespace tutti::bootstrap {

/// Why the tries of a call have failed, and when the next one is due. Of one call, whose tries take all its addresses
/// in turn. The pauses grow.
class FailedTries {
 public:
  enum class Why { refused, no_port, other };

  /// Ranks that were refused together try again at different times.
  FailedTries(int rank, std::size_t addresses) : spread_ns_(rank % 16 * ms), addresses_(addresses) {}

  void add(std::string words, Why why, std::int64_t now_ns) {
    last_ = std::move(words);
    if (alike_ == 0 || why_ != why) {
      why_ = why;
      alike_ = 0;
      alike_since_ns_ = now_ns;
    }
    ++alike_;
    ++count_;
    next_ns_ = now_ns + pause_ns_ + spread_ns_;
    pause_ns_ = std::min(2 * pause_ns_, 250 * ms);
  }

  int count() const { return count_; }
  /// The words about the last one.
  const std::string& last() const { return last_; }
  std::int64_t next_ns() const { return next_ns_; }
  /// Whether the last tries at all addresses, for at least so long, had the same reason.
  bool alike(Why why, std::int64_t for_ns, std::int64_t now_ns) const {
    return why_ == why && alike_ >= addresses_ && now_ns - alike_since_ns_ >= for_ns;
  }

 private:
  static constexpr std::int64_t ms = 1'000'000;

  std::int64_t spread_ns_;
  std::size_t addresses_;
  std::string last_ = "not tried yet";
  int count_ = 0;
  Why why_ = Why::other;             ///< of the last try,
  std::size_t alike_ = 0;            ///< and of so many in a row
  std::int64_t alike_since_ns_ = 0;  ///< the first of these
  std::int64_t next_ns_ = 0;
  std::int64_t pause_ns_ = 10 * ms;
};

/// Connects, proves the secret in both directions, says which rank calls, and waits for the welcome. Retries after
/// errors that may pass, for as long as `advance` is called. A root that made its id listens before anybody knows the
/// id: where all addresses have been refusing for a second, it has gone.
class Call {
 public:
  /// Each try uses the next of the id's addresses. `id` and `who` must outlive this.
  Call(System& system, const UniqueId& id, const Bootstrap::Who& who, std::int64_t handshake_ms);

  /// Says this in place of a join; the answer is then the error sent by the other end. Before the first advance.
  void excuse(const Excused& excuse) { excuse_ = write_excuse(excuse); }

  /// The welcome, once. Errors: those that a retry would not help, such as a different secret or a root that has gone;
  /// or the error sent by the other end.
  Result<std::optional<Welcome>> advance();
  /// The connection, after the welcome.
  Wire take_wire() { return std::exchange(wire_, Wire(system_, Socket())); }

  int failed_tries() const { return failed_.count(); }
  /// What keeps the try under way, or why the last one failed.
  std::string trouble() const;

  /// Adds the socket to wait for; returns the latest time for the next advance.
  std::int64_t poll_set(std::vector<PollItem>& items) const;

 private:
  enum class Phase {
    away,      ///< no connection; failed_ says when to try again
    greeting,  ///< hello sent or being sent, challenge awaited
    proving,   ///< proof and join sent or being sent, welcome awaited
  };
  Result<std::optional<Welcome>> step();
  Result<void> connect();
  using Why = FailedTries::Why;
  void again(std::string words, Why why = Why::other);
  void again(const Error& error);
  std::optional<Error> hopeless() const;
  Result<void> greet();
  Result<std::optional<Welcome>> await_welcome();

  System& system_;
  const UniqueId& id_;
  const Bootstrap::Who& who_;
  std::int64_t handshake_ms_;
  Wire wire_;
  Phase phase_ = Phase::away;
  handshake::RankSide handshake_ = {};
  FailedTries failed_;
  std::optional<Bytes> excuse_;
  std::size_t calls_ = 0;      ///< so far
  std::int64_t limit_ns_ = 0;  ///< of one connection, until the challenge arrives
};

/// How a rank that cannot take part in a start lets all ranks know why: calls the root of the id, as a rank does, and
/// gives it the reason in place of a join; the root makes it the error of all ranks, those that come later included. A
/// Task; it ends when the root has answered or cannot be told, at the deadline at the latest.
class Excuse final : public Task {
 public:
  Excuse(System& system, const UniqueId& id, Bootstrap::Who who, const Error& why, std::int64_t deadline_ns)
      : system_(system),
        id_(id),
        who_(std::move(who)),
        deadline_ns_(deadline_ns),
        call_(system, id_, who_, BootstrapLimits{}.handshake_ms) {
    call_.excuse(excused(who_, why));
  }
  Excuse(const Excuse&) = delete;
  Excuse& operator=(const Excuse&) = delete;

  /// The root answers with the failure, which is an error of the call.
  bool advance() override {
    const auto answer = call_.advance();
    return answer && !*answer && system_.now_ns() < deadline_ns_;
  }
  std::int64_t poll_set(std::vector<PollItem>& items) override { return std::min(deadline_ns_, call_.poll_set(items)); }

 private:
  System& system_;
  UniqueId id_;
  const Bootstrap::Who who_;
  const std::int64_t deadline_ns_;
  Call call_;
};

}  // namespace tutti::bootstrap
