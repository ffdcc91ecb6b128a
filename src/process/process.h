// Objects that a process has once: settings, log, segments, service thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/config.h"
#include "base/log.h"
#include "base/page_kind.h"
#include "base/system.h"
#include "base/unique_fd.h"
#include "bootstrap/shared_listener.h"
#include "choice/choice.h"
#include "launch/key_value_space.h"
#include "net/connection_server.h"
#include "net/own_addresses.h"
#include "place/locator.h"
#include "process/gpu_process.h"
#include "process/peer_process.h"
#include "process/pending_closes.h"
#include "process/places.h"
#include "process/plan_file.h"
#include "process/rdma_devices.h"
#include "process/service.h"
#include "transport/fd_server.h"
#include "transport/rank_area.h"
#include "transport/segment.h"
#include "tune/tune.h"

namespace tutti {

/// The area of one of this process's ranks. Thread ranks of one process hold each other's.
class OwnedArea {
 public:
  OwnedArea(SegmentTable& segments, std::byte* at, SegmentLocation location, const AreaShape& shape)
      : area(at, shape), base(at), name(location.name), segments_(segments) {}
  ~OwnedArea() { (void)segments_.free(base); }
  /// Called when all ranks of this host have mapped the area: a communicator keeps no descriptor.
  void stop_sharing() { segments_.stop_sharing(base); }
  OwnedArea(const OwnedArea&) = delete;
  OwnedArea& operator=(const OwnedArea&) = delete;

  RankArea area;
  std::byte* const base;
  const SegmentName name;

 private:
  SegmentTable& segments_;
};

class Process {
 public:
  /// This process's object, made on first use. Errors: a setting that does not parse; invalid_usage in a forked child.
  static Result<Process*> get();
  /// Where settings are refused: an object with those that are good, which takes part in no communicator, but meets
  /// other ranks to tell them why. Else null, as in a forked child, which is no rank.
  static Process* of_refused();

  /// Without `tune`, the built-in numbers for the machine are used.
  Process(System& system, Config config, Service::Mode mode, std::unique_ptr<Tune> tune = std::make_unique<Tune>());

  /// Starts the descriptor server unless it is running.
  Result<void> serve();

  /// Accepts connections from ranks of other hosts; listens from the first call on. Errors: system (no address, no
  /// descriptor).
  Result<std::shared_ptr<ConnectionServer>> connections();

  /// The listener for the starts whose root is in this process: one per address, for port 0 on any port. Errors:
  /// system.
  Result<std::shared_ptr<bootstrap::SharedListener>> shared_listener(const SocketAddress& at);

  /// Memory that peers can map, as SegmentTable::allocate, on the NUMA node of the calling thread if it is bound to
  /// one.
  Result<std::byte*> allocate(std::size_t bytes, bool touch);

  /// A new formatted area, which thread ranks find under its segment id. Errors: system.
  Result<std::shared_ptr<OwnedArea>> make_area(const AreaShape& shape);
  std::shared_ptr<OwnedArea> find_area(std::uint32_t segment_id);

  /// Another process of this host, one object for all communicators: the known one, else the result of `meet`. Tokens
  /// distinguish processes where a pid is used again. Errors: those of `meet`.
  Result<std::shared_ptr<PeerProcess>> peer_process(std::uint64_t peer_token,
                                                    const std::function<Result<SeenProcess>()>& meet);

  System& system;
  Config config;
  Log log;
  std::uint64_t token = 0;  ///< random: distinguishes processes, whatever their PID namespaces
  std::string host;         ///< for messages
  std::string boot_id;      ///< equal for all processes on one running kernel
  ProcessKey key{};
  SegmentTable segments;
  PageKinds pages;
  SegmentCache cache;
  const std::unique_ptr<Tune> tune;
  Locator locator;
  CpuMap cpu_map;
  Places places;
  Envelopes envelopes;                        ///< which algorithm for which size
  std::shared_ptr<const PlanFile> plan_file;  ///< of TUTTI_PLAN_FILE, if it is set
  Service service;
  Service driver_thread;          ///< the tasks that may wait for the driver of the GPUs, and for which nobody waits
  std::atomic<int> launched = 0;  ///< communicators made from the environment so far
  LauncherSpace launcher;
  OwnAddresses interfaces;
  PendingCloses pending_closes;
  GpuProcess gpus;
  RdmaDevices rdma;

  const std::string& fd_server_name() const { return fd_server_->name(); }

 private:
  Result<void> identify();

  std::mutex mutex_;
  std::shared_ptr<FdServer> fd_server_;
  std::shared_ptr<ConnectionServer> connections_;
  std::map<std::pair<std::string, std::uint16_t>, std::weak_ptr<bootstrap::SharedListener>> listeners_;
  std::map<std::uint32_t, std::weak_ptr<OwnedArea>> areas_;
  std::map<std::uint64_t, std::weak_ptr<PeerProcess>> peers_;
};

}  // namespace tutti
