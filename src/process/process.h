// Objects that a process has once: settings, log, memory, service thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/config.h"
#include "base/log.h"
#include "base/system.h"
#include "choice/choice.h"
#include "launch/key_value_space.h"
#include "place/locator.h"
#include "process/gpu_process.h"
#include "process/peer_process.h"
#include "process/pending_closes.h"
#include "process/places.h"
#include "process/plan_file.h"
#include "process/process_memory.h"
#include "process/process_network.h"
#include "process/service.h"
#include "transport/fd_server.h"
#include "tune/tune.h"

namespace tutti {

/// Who this process is, for messages and for other processes.
class ProcessIdentity {
 public:
  ProcessIdentity();

  /// Makes token and key, unless they are there. Any thread. Errors: system.
  Result<void> make();

  std::uint64_t token = 0;  ///< random: distinguishes processes, whatever their PID namespaces
  ProcessKey key{};
  std::string host;     ///< for messages
  std::string boot_id;  ///< equal for all processes on one running kernel

 private:
  std::mutex mutex_;
};

/// What algorithms are chosen by.
struct ChoiceGrounds {
  const std::unique_ptr<Tune> tune;             ///< numbers of the machine
  Envelopes envelopes = {};                     ///< which algorithm for which size
  std::shared_ptr<const PlanFile> plan_file{};  ///< of TUTTI_PLAN_FILE, if it is set
};

/// Where this process is on its machine.
struct OwnMachine {
  Locator locator;
  CpuMap cpu_map;
  Places places;
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

  /// Starts the descriptor server, by which peers know this process, unless it is running.
  Result<void> serve();

  System& system;
  Config config;
  Log log;
  ProcessIdentity identity;
  ChoiceGrounds choices;
  OwnMachine machine;
  ProcessMemory memory;
  Service service;
  Service driver_thread;          ///< the tasks that may wait for the driver of the GPUs, and for which nobody waits
  std::atomic<int> launched = 0;  ///< communicators made from the environment so far
  LauncherSpace launcher;
  PendingCloses pending_closes;
  GpuProcess gpus;
  ProcessNetwork network;
  PeerProcesses peers;
};

}  // namespace tutti
