// How ranks meet: all ranks first connect to a root; exchange() then gathers one blob of every rank on every rank, over
// a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system.h"
#include "net/unique_id.h"

namespace tutti {

using Blob = std::vector<std::byte>;

namespace bootstrap {
class SharedListener;
}

struct BootstrapLimits {
  std::int64_t handshake_ms = 10'000;  ///< one connection, from greeting to proof (on the listener's side: 2 s)
  std::int64_t init_ms = 120'000;      ///< root: from the first rank that takes part; a rank: per exchange
  /// of a rank: time by which all exchanges must be complete (now_ns); 0: none
  std::int64_t deadline_ns = 0;
  std::int64_t missing_report_ms = 10'000;  ///< after this, a warning names the missing ranks; 0: no warning
  std::size_t blob_bytes_max = 64 * 1024;
  int fan_out = 16;  ///< children of the root, and of each rank that accepts children
};

/// Receives log lines from within BootstrapRoot::advance.
struct BootstrapLog {
  std::function<void(const std::string&)> warn = {};
  std::function<void(const std::string&)> info = {};
};

/// The listening side: a Task of the service thread in the process that made the id. It keeps no state for a connection
/// before its handshake is complete, holds at most 64 pending connections, and ends when all ranks are done or the
/// limit has passed; the clock starts with the first rank. The root gives each rank a place in a tree
/// (bootstrap_tree.h) and keeps the rank's connection until the rank has moved there; it keeps only the connections of
/// its own children. It tells every rank why init failed: a duplicate rank, ranks that disagree on nranks, version or
/// settings, a lost rank, one that cannot take part, or missing ranks with number and last seen address; ranks that
/// come after the failure hear it too, until all have or the limit has passed. The shortest limit of all ranks applies,
/// so that this rank gets the message too; init_ms applies if no rank has sent a limit.
class BootstrapRoot final : public Task {
 public:
  /// Listens on `at` (port 0: any).
  static Result<std::unique_ptr<BootstrapRoot>> open(System& system, const SocketAddress& at, const Secret& secret,
                                                     const BootstrapLimits& limits, BootstrapLog log = {});
  /// Shares the listener with other starts.
  static Result<std::unique_ptr<BootstrapRoot>> open(System& system,
                                                     const std::shared_ptr<bootstrap::SharedListener>& shared_listener,
                                                     const Secret& secret, const BootstrapLimits& limits,
                                                     BootstrapLog log = {});
  ~BootstrapRoot() override;
  SocketAddress address() const;
  /// Makes the start of `ranks` ranks fail on all of them, those that come later included, because `rank`, which is in
  /// this process, cannot take part. Needs no descriptor. Any thread; the next advance tells the others.
  /// `linger`: see awaited.
  void excuse(int rank, int ranks, const Error& why, bool linger = true);
  /// True while ranks of other processes are connected and still need the root, and for three seconds after the start
  /// has failed while ranks are on their way that do not know why, and cannot know but by the root. Any thread.
  bool awaited() const;
  /// Whether this is the root of the ranks that know `secret`.
  bool is_of(const Secret& secret) const;
  /// Advice for the user, added to the error about two processes that claim one rank.
  void advise(const std::string& advice);

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  struct State;
  explicit BootstrapRoot(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Gathers one blob of every rank on every rank, any number of times. A state machine that is advanced.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Begins the next exchange with this rank's contribution. Requires that no exchange is under way; at most
  /// BootstrapLimits::blob_bytes_max.
  virtual void exchange(Blob mine) = 0;

  /// True when the exchange under way is complete (or there is none). After an error every call returns the same error.
  virtual Result<bool> advance() = 0;

  /// For ranks with other work between exchanges: checks whether the start has failed meanwhile because a rank was lost
  /// or reported a failure. Errors: as advance.
  virtual Result<void> look() = 0;

  /// Makes the start fail with this error on all ranks, including those that are between exchanges. For ranks with a
  /// place; the next advance or look returns the error.
  virtual void fail(const Error& error) = 0;

  /// By rank, after advance() returned true.
  virtual const std::vector<Blob>& gathered() const = 0;

  /// Adds the handles to wait for before the next advance; returns the latest time for it.
  virtual std::int64_t poll_set(std::vector<PollItem>& items) const = 0;
};

/// A rank's side: connects, proves the secret in both directions (HMAC-SHA256 over nonces), takes the place that the
/// root gives it, then takes part in any number of exchanges. A rank may have children in the tree; it passes their
/// frames on while it is advanced. An exchange is complete when all ranks below have it too. A state machine: one
/// thread can drive several. The destructor says goodbye.
class Bootstrap final : public Exchange {
 public:
  struct Who {
    int rank = 0;
    int ranks = 1;
    std::uint64_t settings = 0;      ///< hash of the settings that must be equal on all ranks
    std::string settings_text = {};  ///< "TUTTI_X=1 …", to name a difference (shortened to 1 KiB)
    int version = 0;                 ///< of the library; must be equal on all ranks
    std::uint64_t source = 0;        ///< digest of the code that ranks have in common; must be equal on all ranks
    std::string process = {};        ///< name of the process in messages; empty: "pid 12 on node-b"
    std::int64_t limit_ms = 0;       ///< how long it waits for other ranks; set by Bootstrap, from its limits
  };
  Bootstrap(System& system, const UniqueId& id, Who who, const BootstrapLimits& limits);
  ~Bootstrap() override;

  /// Whether the root has admitted this rank.
  bool met() const;
  /// Whether it can take part in exchanges.
  bool placed() const;

  void exchange(Blob mine) override;
  /// Retries refused connections: until the init limit if the root may come later than its ranks, else for a second.
  /// Errors: timeout, remote, invalid_usage, system; with the root's message if it sent one.
  Result<bool> advance() override;
  Result<void> look() override;
  void fail(const Error& error) override;
  const std::vector<Blob>& gathered() const override;
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti
