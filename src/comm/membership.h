// The members of a communicator and the facts agreed at the start, as one rank knows them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/host.h"
#include "call/waiting.h"
#include "choice/machine.h"
#include "comm/control_links.h"
#include "cuda/resources.h"
#include "net/arrivals.h"
#include "net/peer_address.h"
#include "place/job_map.h"
#include "plan/plan.h"
#include "process/process.h"
#include "transport/rank_area.h"
#include "transport/rights.h"
#include "transport/unacknowledged.h"

namespace tutti {

/// A rank, as this rank sees it.
struct Peer {
  std::uint64_t token = 0;  ///< of its process
  int pid = 0;              ///< in the rank's own PID namespace; for messages
  std::string host;
  std::string fd_server;
  ProcessKey key{};
  SegmentName area_name;
  std::shared_ptr<OwnedArea> thread_area;  ///< keeps the area of a rank of this process alive
  SharedMapping mapped_area;               ///< keeps the area of a rank of another process mapped
  std::shared_ptr<MirroredHeader> mirror;  ///< of a rank of another host: stands for its area
  RankArea area;
  std::uint64_t area_address = 0;  ///< of the area in the rank's own process
  bool same_process = false;
  std::shared_ptr<PeerProcess> process;  ///< of a rank in another process of this host
  std::vector<PeerAddress> addresses;    ///< of a rank of another host: its listeners
  std::uint32_t transports = ~0u;        ///< that its process can use: see usable_transports

  bool remote() const { return mirror != nullptr; }
  /// Process id for system calls; 0: not visible in this PID namespace.
  int visible_pid() const { return process ? process->pid() : 0; }
  /// Of a rank in another process of this host.
  ForeignProcess foreign_process() const {
    return {.pid = visible_pid(), .word_at = area_address + offsetof(AreaHeader, life), .word = area.header().life};
  }
};

/// All facts about a communicator; filled in by Join.
struct Membership {
  Rank rank = 0;
  int ranks = 1;
  std::string name;  ///< for messages: "comm 1f3a"
  std::string who;   ///< of this rank: "comm 1f3a rank 2"
  bool deterministic = false;
  WhileWaiting while_waiting;
  CallLimit call_limit;  ///< of calls, unless tuttiCommSetTimeout says otherwise
  std::shared_ptr<OwnedArea> area;
  std::vector<Peer> peers;                      ///< by rank, self included
  std::vector<int> hosts;                       ///< by rank: the first rank that shares memory with it
  bool pulls = false;                           ///< every rank may copy from every process
  Rights rights = Rights::now();                ///< that this process had when that was found out
  bool oversubscribed = false;                  ///< more ranks than cores, on this rank's machine
  int cores = 1;                                ///< cores on which all ranks together may run
  std::shared_ptr<const Places::Claim> places;  ///< keeps the library's threads off the cores of these ranks
  std::string nearest_nic;                      ///< to this rank; empty: unknown
  JobMap map;                                   ///< where the ranks are, as rank 0 sees it
  Machine machine;                              ///< measured by rank 0: all ranks choose by the same numbers
  int sockets = 1;                              ///< connections to a rank of another host, per channel
  std::shared_ptr<Arrivals> arrivals;           ///< connections from other hosts; null: there are none
  std::shared_ptr<ControlLinks> control;        ///< control connections to other hosts; null: there are none
  /// Of the data connections to other hosts.
  std::shared_ptr<Unacknowledged> unacknowledged = std::make_shared<Unacknowledged>();
  cuda::SharedGpu gpu;      ///< of this rank; null: host memory only
  bool some_gpu = false;    ///< some rank has one
  bool gpus_reach = false;  ///< every rank's GPU has proven that it reaches every other rank's memory

  bool spans_hosts() const { return control != nullptr; }
  /// No two ranks share memory.
  bool each_on_its_own() const {
    for (std::size_t i = 0; i < hosts.size(); ++i)
      if (hosts[i] != static_cast<int>(i)) return false;
    return spans_hosts();
  }
  /// Whether some other rank is on this rank's host.
  bool shares_memory() const { return std::ranges::count(hosts, hosts[static_cast<std::size_t>(rank)]) > 1; }
  /// "rank 2/8 (process 48211 on node-b)"
  std::string describe(Rank of) const {
    const Peer& peer = peers[static_cast<std::size_t>(of)];
    return fmt::format("rank {}/{} (process {} on {})", of, ranks, peer.pid, peer.host);
  }
  /// `shape` with the levels and the order that all calls of the communicator share.
  Shape with_levels(Shape shape) const {
    shape.levels = map.levels;
    shape.order = map.order;
    shape.rings = map.rings;
    return shape;
  }
};

}  // namespace tutti
