// Where this process is in its machine, and where all ranks of a job are. The detector (src/topology) knows the
// machine.
#pragma once

#include <sched.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/error.h"
#include "place/job_map.h"

namespace tutti {

namespace topology {
struct Topology;
}

/// Told to rank 0 by every rank. Numbers of the system; -1: unknown, or the rank is not bound to one of them.
struct OwnSeat {
  std::int32_t package = -1;
  std::int32_t numa = -1;
  std::int32_t cache = -1;     ///< lowest CPU that shares the last-level cache
  std::uint32_t recorded = 0;  ///< 1: the machine is that of TUTTI_TOPO_FILE, in which the rank has no CPUs of its own
};

/// What rank 0 has been told of a job, by rank.
struct JobRanks {
  std::span<const OwnSeat> seats;
  std::span<const int> hosts;          ///< the first rank of its host
  std::span<const std::string> names;  ///< of its host, for people
  bool by_number = false;  ///< the order is that of the numbers, wherever the ranks are, and there are no rings
  std::string dump = {};   ///< TUTTI_JOB_DUMP_FILE: where to write all this and the map; empty: nowhere
};

/// The machine as this process sees it, detected once, when the first rank starts.
class Locator {
 public:
  struct Files {
    std::string machine;    ///< TUTTI_TOPO_FILE: a recorded machine to use instead
    std::string dump;       ///< TUTTI_TOPO_DUMP_FILE: where to write it
    std::string ring;       ///< TUTTI_GRAPH_FILE: rings of a host's ranks
    std::string ring_dump;  ///< TUTTI_GRAPH_DUMP_FILE: where to write those of the first host
  };
  /// Not `live`: this machine is not looked at, as if nothing were known of it.
  explicit Locator(Files files = {}, bool live = true);
  ~Locator();
  Locator(const Locator&) = delete;
  Locator& operator=(const Locator&) = delete;

  /// Of a rank that may run on `cpus`. Errors: those of a file that cannot be read or written; invalid_argument where
  /// this build has no detector and a file is named.
  Result<OwnSeat> seat(const cpu_set_t& cpus);

  /// The map of a job whose ranks have said where they are. On a recorded machine the ranks of a host take its GPUs in
  /// turn of their numbers, or its NUMA nodes if there are none; rings follow the search for its links. All hosts are
  /// taken as this process's machine, as far as they are recorded. A file with rings counts more than either. Errors:
  /// those of a file that cannot be read or written; invalid_argument where its rings are for another number of ranks
  /// than the first host has.
  Result<JobMap> map(const JobRanks& ranks) const;

 private:
  Files files_;
  bool live_;
  mutable std::mutex mutex_;
  std::unique_ptr<const topology::Topology> machine_;
};

}  // namespace tutti
