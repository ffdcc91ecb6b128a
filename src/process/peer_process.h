// Another process of this host as the kernel shows it: whether it has ended, and whether a signal has stopped it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/system.h"
#include "transport/fd_server.h"

namespace tutti {

/// One object per process for all communicators. `ended` and `poll_set`: any thread; the other functions: the service
/// thread.
class PeerProcess {
 public:
  /// Without a pidfd or a connection in `seen`, the end of the process is not noticed.
  explicit PeerProcess(SeenProcess seen);

  /// In this process's PID namespace; 0: not visible from here.
  int pid() const { return seen_.pid; }
  bool ended() const;
  /// The program has closed the handle by which this process watches, so nobody can tell any more.
  bool lost_handle() const { return lost_handle_.load(std::memory_order_relaxed); }
  /// Adds the handle that becomes readable when the process ends.
  void poll_set(std::vector<PollItem>& items) const;

  /// Whether /proc shows that the process is stopped. If not, only its silence can reveal it.
  bool shows_stops() const { return proc_pid_ > 0; }
  /// Whether /proc shows that it is stopped now, by a signal (T) and not by a debugger (t). Any thread.
  bool is_stopped() const { return shows_stops() && stat().starts_with('T') && !ended(); }
  /// Whether /proc shows that the process is being ended: its descriptors are closed first, and on a loaded machine it
  /// is seen to have ended much later.
  bool is_ending() const;
  /// How long the process has been stopped by a signal, not by a debugger, as far as the checks so far have seen. Each
  /// check counts for a second at most, so that a pause of this process does not make others look stopped; on a loaded
  /// machine checks may be seconds apart.
  std::int64_t stopped_ns(std::int64_t now_ns);

 private:
  int watched() const { return seen_.pidfd ? seen_.pidfd.get() : seen_.connected.get(); }
  std::string stat() const;
  std::string run_time() const;

  SeenProcess seen_;
  int proc_pid_ = 0;  // its number in /proc, which may be mounted for another PID namespace; 0: it has none there
  std::int64_t looked_ns_ = 0;
  mutable std::atomic<bool> lost_handle_ = false;
  bool stopped_ = false;
  std::string ran_;  // see run_time, when it was seen stopped
  std::int64_t stopped_ns_ = 0;
};

/// The other processes of this host that this one has met, one object each for all communicators. Thread-safe.
class PeerProcesses {
 public:
  /// The known one, else the result of `meet`. Tokens distinguish processes where a pid is used again. Errors: those of
  /// `meet`.
  Result<std::shared_ptr<PeerProcess>> get(std::uint64_t token, const std::function<Result<SeenProcess>()>& meet);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<PeerProcess>> known_;
};

}  // namespace tutti
