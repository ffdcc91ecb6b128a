// Another process of this host as the kernel shows it: whether it has ended, and whether a signal has stopped it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/system.h"
#include "transport/fd_server.h"

namespace tutti {

/// One for all communicators. `ended` and `poll_set`: any thread; the others: the service thread.
class PeerProcess {
 public:
  /// `seen` has a pidfd or a connection, else nothing is known of its end.
  explicit PeerProcess(SeenProcess seen);

  /// In this process's PID namespace; 0: it cannot be seen from here.
  int pid() const { return seen_.pid; }
  /// It has ended.
  bool ended() const;
  /// Adds what becomes readable at its end.
  void poll_set(std::vector<PollItem>& items) const;

  /// Whether /proc tells that it is stopped. Where it does not, only silence can.
  bool shows_stops() const { return proc_pid_ > 0; }
  /// How long it has been stopped by a signal, not by a debugger, for the looks taken so far; each counts for a quarter
  /// of a second at most, so that a pause of this process makes nobody else look stopped.
  std::int64_t stopped_ns(std::int64_t now_ns);

 private:
  int watched() const { return seen_.pidfd ? seen_.pidfd.get() : seen_.connected.get(); }
  bool is_stopped() const;

  SeenProcess seen_;
  int proc_pid_ = 0;  // its number in /proc, which may be mounted for another PID namespace; 0: it has none there
  std::int64_t looked_ns_ = 0;
  std::int64_t stopped_ns_ = 0;
};

}  // namespace tutti
