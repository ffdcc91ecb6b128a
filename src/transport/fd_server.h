// Hands descriptors of this process's segments to its peers, over a unix socket without a name on disk.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/own_sockets.h"
#include "base/system.h"
#include "transport/segment.h"

namespace tutti {

/// Whoever shows this may have our segments; told to members of a communicator during the authenticated start.
using ProcessKey = std::array<std::byte, 32>;

/// A Task for the service thread. Peers with another uid, a wrong key or a malformed request are refused; at most 64
/// connections pend, each for at most 2 s; the oldest makes room for a new one. A peer that asks to watch this process
/// keeps its connection, whose end tells it that this process has ended. Where this process has no descriptor left,
/// peers are told so one by one.
class FdServer final : public Task {
 public:
  static Result<std::unique_ptr<FdServer>> open(const SegmentTable& segments, const ProcessKey& key);

  /// Abstract socket name, to be told to peers.
  const std::string& name() const { return name_; }

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  struct Pending {
    UniqueSocket fd;
    std::int64_t deadline_ns = 0;
    bool in_place_of_spare = false;
  };
  FdServer(const SegmentTable& segments, const ProcessKey& key, UniqueSocket listener, std::string name);
  void accept_all(std::int64_t now_ns);
  bool give_spare();
  bool answer(Pending& pending);
  void drop_watchers();

  const SegmentTable& segments_;
  ProcessKey key_;
  UniqueSocket listener_;
  UniqueFd spare_;  ///< to let one peer in with, and tell it that there is no other
  std::string name_;
  std::vector<Pending> pending_;        // oldest first
  std::vector<UniqueSocket> watchers_;  // connections of peers that wait for the end of this process
  std::int64_t deaf_until_ns_ = 0;      // no descriptor was left to accept with: look away for a while
};

/// The process at the other end of a unix connection, as the kernel names it, whatever that process says of itself.
struct SeenProcess {
  int pid = 0;             ///< in this process's PID namespace; 0: it is in another one and cannot be seen from here
  UniqueFd pidfd;          ///< readable once the process has ended; invalid where the kernel gives none
  UniqueSocket connected;  ///< of `watch_process` alone: its end is the end of the process
};

struct Fetched {
  SegmentTable::Export segment;
  SeenProcess owner;
};

/// Asks the server called `name`. Waits at most `timeout_ns`, and ends early when `give_up` says so, which it is asked
/// every 50 ms. The key is shown only to a server of this user. Errors: remote (refused, gone, given up), timeout,
/// system.
Result<Fetched> fetch_segment(const std::string& name, const ProcessKey& key, SegmentName segment,
                              std::int64_t timeout_ns, const std::function<bool()>& give_up);

/// Opens a connection to the server called `name` that lives as long as its process. Limits and errors as above.
Result<SeenProcess> watch_process(const std::string& name, const ProcessKey& key, std::int64_t timeout_ns,
                                  const std::function<bool()>& give_up);

}  // namespace tutti
