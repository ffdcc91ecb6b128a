// Passes descriptors of this process's segments to its peers over an abstract unix socket, which has no name on disk.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/own_sockets.h"
#include "base/system.h"
#include "transport/rights.h"
#include "transport/segment.h"

namespace tutti {

/// Admits its owner to this process's segments. Members of a communicator receive it during the authenticated start.
using ProcessKey = std::array<std::byte, 32>;

/// A Task for the service thread. Refuses peers with another uid, a wrong key or a malformed request. At most 64
/// connections are pending, each for at most 2 s; a new one replaces the oldest. A peer that asks to watch this process
/// keeps its connection; when the connection closes, the peer knows that this process has ended. If this process runs
/// out of descriptors, the server accepts peers one by one to tell them so.
class FdServer final : public Task {
 public:
  static Result<std::unique_ptr<FdServer>> open(const SegmentTable& segments, const ProcessKey& key);

  /// Abstract socket name, to be sent to peers.
  const std::string& name() const { return name_; }

  /// For a process that may have become another user: from now on peers see that one. Errors: system.
  Result<void> follow_user();

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  struct Pending {
    UniqueSocket fd;
    std::int64_t deadline_ns = 0;
    bool in_place_of_spare = false;
  };
  FdServer(const SegmentTable& segments, const ProcessKey& key, UniqueSocket listener, std::string name)
      : segments_(segments), key_(key), listener_(std::move(listener)), name_(std::move(name)) {}
  void accept_all(std::int64_t now_ns);
  bool answer(Pending& pending);
  void drop_watchers();

  const SegmentTable& segments_;
  ProcessKey key_;
  UniqueSocket listener_;
  uid_t user_ = Rights::user_now();  ///< as whom the kernel shows this end
  SpareDescriptor spare_;            ///< for accepting one peer to tell it that there are no more descriptors
  std::string name_;
  std::vector<Pending> pending_;        // oldest first
  std::vector<UniqueSocket> watchers_;  // connections of peers that wait for the end of this process
  std::int64_t deaf_until_ns_ = 0;      // out of descriptors: does not accept until then
};

/// The process at the other end of a unix connection, as identified by the kernel, not by the process itself.
struct SeenProcess {
  /// in this process's PID namespace; 0: the process is in another one and not visible from here
  int pid = 0;
  UniqueFd pidfd;          ///< readable once the process has ended; invalid if the kernel provides none
  UniqueSocket connected;  ///< only from `watch_process`: closes when the process ends
};

struct Fetched {
  SegmentTable::Export segment;
  SeenProcess owner;
};

/// Asks the server called `name` for a segment. Waits at most `timeout_ns`; returns early when `give_up`, called every
/// 50 ms, returns true. Shows the key only to a server of this user. Errors: remote (refused, gone, given up), timeout,
/// system.
Result<Fetched> fetch_segment(const std::string& name, const ProcessKey& key, SegmentName segment,
                              std::int64_t timeout_ns, const std::function<bool()>& give_up);

/// Whether a process still serves by this name. Not once it has ended, or has become another program by exec. Where the
/// answer cannot be known: true.
bool is_served(const std::string& name);

/// Opens a connection to the server called `name` that stays open as long as its process lives. Limits and errors as
/// for fetch_segment.
Result<SeenProcess> watch_process(const std::string& name, const ProcessKey& key, std::int64_t timeout_ns,
                                  const std::function<bool()>& give_up);

}  // namespace tutti
