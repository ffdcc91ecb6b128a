// Where the library's threads run and where its memory lies: near the rank that they serve (decision 21).
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "place/cpu_map.h"
#include "place/cpu_set.h"
#include "place/thread_cpus.h"

namespace tutti {

/// The threads of this process that the library has started, and what the ranks of this machine have said of their
/// CPUs. Threads are placed when a communicator starts and when a thread starts; a later start places them all anew.
/// Thread-safe.
class Places {
 public:
  /// The two system calls, of a thread by its number in the system.
  struct Calls {
    std::function<Result<CpuSet>(pid_t thread)> get;
    std::function<Result<void>(pid_t thread, const CpuSet& cpus)> set;
    std::size_t cpus = 0;  ///< of the machine, whatever this process may use; a thread with so many is not bound

    static Calls real();
  };

  /// Not `on`: threads stay where they start, and memory where it is touched first. `map` and `log` must outlive this.
  Places(CpuMap& map, Log& log, bool on, Calls calls = Calls::real());

  /// Where the ranks of a communicator may run that are on this machine, and those of them in this process.
  struct Claim {
    std::vector<CpuSet> ranks;
    std::vector<CpuSet> own;
  };
  /// Counts as long as the result lives: as long as the communicator.
  std::shared_ptr<const Claim> claim(Claim claim);

  enum class Kind {
    service,  ///< sleeps nearly always; serves the ranks of this process
    stream,   ///< spins; serves the thread that starts it
    proxy,    ///< a stream of a rank with a GPU; must not be on its rank's core, which spins too
  };
  /// The calling thread, from the construction to the end of this object. It begins where its creator may run.
  class Thread {
   public:
    /// `device`: the CPUs near its GPU, if it has one.
    Thread(Places& places, Kind kind, const CpuSet& device = {}) : places_(places), id_(::gettid()) {
      places_.enter(id_, kind, device);
    }
    ~Thread() { places_.leave(id_); }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

   private:
    Places& places_;
    pid_t id_;
  };

  /// The NUMA node for memory of the calling thread and a device on `device_node`, which comes first; -1: it is not
  /// bound to one node, or there is one alone.
  int memory_node(int device_node = -1);
  /// Says in the log where memory of a rank lies, unless that has been said. `refused`: why the kernel did not take the
  /// node, an errno; 0: it did.
  void tell_memory(int node, int refused);

 private:
  struct Entry {
    Kind kind = Kind::stream;
    CpuSet home;    ///< where its creator could run
    CpuSet now;     ///< where it was put last
    CpuSet device;  ///< near its GPU
    std::string told;
  };
  void enter(pid_t id, Kind kind, const CpuSet& device);
  void leave(pid_t id);
  void place(pid_t id, Entry& entry, const std::vector<Claim>& claims);
  bool bound(const CpuSet& cpus) const;
  CpuSet home_of(const Entry& entry, const std::vector<Claim>& claims) const;
  Result<void> learn_allowed(pid_t id, const Entry& entry);
  void put(pid_t id, Entry& entry, const CpuSet& cpus, const std::string& why);
  void tell(Entry& entry, const CpuSet& cpus, const std::string& why);
  std::vector<Claim> living_claims();

  CpuMap& map_;
  Log& log_;
  const bool on_;
  const Calls calls_;
  std::mutex mutex_;
  std::map<pid_t, Entry> threads_;
  std::vector<std::weak_ptr<const Claim>> claims_;
  CpuSet allowed_;  ///< by the control group; none: not known yet
  std::string memory_told_;
};

}  // namespace tutti
