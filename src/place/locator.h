// Where this process is in its machine, and where all ranks of a job are. The detector (src/topology) knows the
// machine.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "place/host_groups.h"
#include "place/job_map.h"

namespace tutti {

namespace topology {
struct Topology;
}

/// Told to rank 0 by every rank. Numbers of the system; -1: unknown, or the rank is not bound to one of them.
struct ReportedLocation {
  std::int32_t package = -1;
  std::int32_t numa = -1;
  std::int32_t cache = -1;     ///< lowest CPU that shares the last-level cache
  std::uint32_t recorded = 0;  ///< 1: the machine is that of TUTTI_TOPO_FILE, in which the rank has no CPUs of its own
  std::array<char, 32> gpu{};  ///< PCI address of its GPU, "0000:81:00.0"; empty: it has none
  std::array<char, 32> nic{};  ///< name of the NIC nearest to its GPU or NUMA node; empty: none is known
  HostGroups groups{};         ///< in which its host is
};

/// A machine that any number of communicators look at; null: nothing is known.
using SharedMachine = std::shared_ptr<const topology::Topology>;

/// A machine as ranks of different hosts tell each other of it. Equal on machines that are alike: without what only
/// this process sees (the CPUs that it may use), what changes from hour to hour (a link that sleeps), and what names a
/// single machine.
std::string machine_text(const topology::Topology& machine);

/// As another host has told of it. Errors: remote (the text is not a machine).
Result<SharedMachine> read_machine_text(std::string_view text);

/// What a process finds out for one of its ranks.
struct LocatedRank {
  ReportedLocation location;
  SharedMachine machine;                    ///< in which the location is
  std::shared_ptr<const std::string> text;  ///< the same machine for other hosts (machine_text); null: none
};

/// What rank 0 has been told of a job, by rank.
struct JobRanks {
  std::span<const ReportedLocation> locations;
  std::span<const int> hosts;                ///< the first rank of its host
  std::span<const std::string> names;        ///< of its host, for people
  std::vector<SharedMachine> machines = {};  ///< of its host
  bool by_number = false;                    ///< the order is that of the numbers, wherever the ranks are; no rings
  std::string dump = {};  ///< TUTTI_JOB_DUMP_FILE: where to write all this and the map; empty: nowhere
};

/// The machine as this process sees it, detected when the first rank starts, and once more when the first rank with a
/// GPU does. Thread-safe.
class Locator {
 public:
  struct Files {
    std::string machine;         ///< TUTTI_TOPO_FILE: a recorded machine to use instead
    std::string dump;            ///< TUTTI_TOPO_DUMP_FILE: where to write it
    std::string ring;            ///< TUTTI_GRAPH_FILE: rings of a host's ranks
    std::string ring_dump;       ///< TUTTI_GRAPH_DUMP_FILE: where to write those of the first host
    std::string groups;          ///< TUTTI_TOPO_GROUPS: no file, but groups of hosts
    HostGroups groups_of_slurm;  ///< used if it is empty
  };
  /// Not `live`: this machine is not looked at, as if nothing were known of it.
  explicit Locator(Files files = {}, bool live = true) : files_(std::move(files)), live_(live) {}
  Locator(const Locator&) = delete;
  Locator& operator=(const Locator&) = delete;

  /// Of a rank that may run on `cpus` and has the GPU at this PCI address; empty: it has none. Errors: those of a file
  /// that cannot be read or written; invalid_argument where TUTTI_TOPO_GROUPS is no list of names.
  Result<LocatedRank> locate(const cpu_set_t& cpus, const std::string& gpu);

  /// The map of a job whose ranks have said where they are, by the machines of their hosts (job_locations). A file with
  /// rings counts more than either. Errors: those of a file that cannot be read or written; invalid_argument where its
  /// rings are for another number of ranks than the first host has.
  Result<JobMap> map(const JobRanks& ranks) const;

 private:
  Files files_;
  bool live_;
  std::mutex mutex_;
  SharedMachine machine_;
  std::shared_ptr<const std::string> text_;
  bool drivers_asked_ = false;
};

}  // namespace tutti
