// How ranks find each other: a root that all call first, and exchange(): one blob per rank, all to all, over a tree.
#pragma once

#include <atomic>
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
  std::int64_t handshake_ms = 10'000;       ///< one connection: greeting to proof (the listener's side: 2 s)
  std::int64_t init_ms = 120'000;           ///< from the first rank that takes part; of a rank: an exchange
  std::int64_t deadline_ns = 0;             ///< of a rank: when all exchanges have to be over (now_ns); 0: none
  std::int64_t missing_report_ms = 10'000;  ///< a warning names the ranks waited for; 0: none
  std::size_t blob_bytes_max = 64 * 1024;
  int fan_out = 16;  ///< ranks below the root, and below each rank that takes some
};

/// Takes lines for the log, from within BootstrapRoot::advance.
struct BootstrapLog {
  std::function<void(const std::string&)> warn = {};
  std::function<void(const std::string&)> info = {};
};

/// The listening side, a Task of the service thread in the process that made the id. It keeps no state for a connection
/// before its handshake is through, holds at most 64 pending ones, and ends once all ranks are done or the limit
/// passed; the clock starts with the first rank. Each rank that comes is given a place in a tree (bootstrap_tree.h),
/// and is held only until it has got there, but for those right below the root. It tells each rank in words why init
/// failed: duplicate rank, ranks that disagree on nranks, version or settings, a rank that was lost, missing ranks by
/// number and last seen address. The limit of the most impatient rank counts, so that it hears the names too; init_ms
/// is for ranks that say none.
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
  /// Ranks of other processes are here, which still need it. Any thread.
  bool awaited() const { return awaited_.load(std::memory_order_relaxed); }
  /// Whether these ranks' start is meant.
  bool is_of(const Secret& secret) const;
  /// What to do where two processes claim one rank; said with that error.
  void advise(const std::string& advice);

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  struct State;
  explicit BootstrapRoot(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::atomic<bool> awaited_ = false;
};

/// One rank's side: connect, prove the secret both ways (HMAC-SHA256 over nonces), take the place that the root gives,
/// then any number of exchanges. A rank may have others below it, whose words it passes on while it is advanced; an
/// exchange is complete when those have it too. A state machine: one thread can drive several. The destructor says
/// goodbye.
class Bootstrap {
 public:
  struct Who {
    int rank = 0;
    int ranks = 1;
    std::uint64_t settings = 0;      ///< hash of the settings that must agree
    std::string settings_text = {};  ///< "TUTTI_X=1 …", to name the difference (shortened to 1 KiB)
    int version = 0;                 ///< of the library, must agree
    std::string process = {};        ///< who this is, for messages; empty: "pid 12 on node-b"
    std::int64_t limit_ms = 0;       ///< how long it waits for others; set by Bootstrap, from its limits
  };
  Bootstrap(System& system, const UniqueId& id, Who who, const BootstrapLimits& limits);
  ~Bootstrap();

  /// Begins the next exchange with this rank's contribution. Requires that none is under way, and at most
  /// blob_bytes_max.
  void exchange(Blob mine);

  /// True when the exchange under way is complete (or there is none). Retries refused connections until the init limit
  /// (rank 0 may be late). Errors: timeout, remote, invalid_usage, system; the root's words where it gave any. After an
  /// error there is nothing but the same error.
  Result<bool> advance();

  /// Between exchanges, for ranks that have something else to do there: whether the start has failed meanwhile, since a
  /// rank was lost or has met trouble. Errors: as advance.
  Result<void> look();

  /// Lets all ranks fail with this, also those that are between exchanges. Between exchanges; the next advance or look
  /// brings it back.
  void fail(const Error& error);

  /// By rank, after advance() said true.
  const std::vector<Blob>& gathered() const;

  /// What to wait for before the next advance; returns the time at which to come back anyway.
  std::int64_t poll_set(std::vector<PollItem>& items) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti
