// What the phases of a rank's start know together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "call/waiting.h"
#include "comm/membership.h"
#include "cuda/resources.h"
#include "init/peer_info.h"
#include "init/phases/address_proof.h"
#include "init/phases/gpu_setup.h"
#include "init/phases/machine_exchange.h"
#include "process/process.h"

namespace tutti {

struct JoinOptions {
  Rank rank = 0;
  int ranks = 1;
  UniqueId id;
  std::string name;  ///< from the config, else derived from the id
  bool deterministic = false;
  std::int64_t init_limit_ms = 0;  ///< 0: TUTTI_INIT_TIMEOUT_MS
  std::int64_t deadline_ns = 0;    ///< when everything must be complete (now_ns); 0: init_limit_ms from now
  cuda::SharedGpu gpu;             ///< null: host memory only
  WhileWaiting while_waiting;
  std::optional<Machine> machine;       ///< of the parent, whose numbers its children take; empty: to be found
  std::optional<Error> refused;         ///< why this rank cannot take part: it tells the others in place of joining
  std::optional<CallLimit> call_limit;  ///< empty: TUTTI_TIMEOUT_MS
  std::size_t map_part_bytes = BootstrapLimits{}.blob_bytes_max;  ///< of the job's map, told in an exchange
};

namespace start {

/// A phase fills in what later ones need.
struct Facts {
  Process& process;
  const JoinOptions options;
  const std::int64_t deadline_ns;
  Exchange& exchange;  ///< with all ranks

  Membership members = {};
  std::vector<PeerInfo> peer_infos = {};  ///< by rank; kept until all are connected
  std::vector<int> networks = {};         ///< by rank: the first rank of its host, where hosts are counted by network
  LocatedRank located = {};
  std::optional<MachineExchange> machines = {};
  std::optional<AddressProof> addresses = {};  ///< where hosts have several networks, until they are proven
  GpuSetup gpus = {};
  cpu_set_t cpus{};                   ///< of all ranks on this machine
  std::optional<Error> trouble = {};  ///< sent to all ranks in the last exchange
  bool rank_failed = false;           ///< some rank has said that it has failed; the last exchange says why
  bool kernels_sync = true;           ///< the kernels of all ranks; after the last exchange

  Rank rank() const { return options.rank; }
  int ranks() const { return options.ranks; }
  bool failed() const { return trouble || rank_failed; }
  /// Whether all greetings could be read. If not, that is so on all ranks.
  bool all_greeted() const { return peer_infos.size() == static_cast<std::size_t>(ranks()); }
  bool several_hosts() const {
    return std::ranges::any_of(members.hosts, [](int host) { return host != 0; });
  }
  bool several_networks() const {
    return several_hosts() &&
           std::ranges::any_of(networks, [this](int network) { return network != networks.front(); });
  }
  bool same_host(Rank other) const { return members.hosts[other] == members.hosts[rank()]; }
  /// Less than what is left of the start's limit, so that there is time to tell the others which rank this one waited
  /// for.
  std::int64_t wait_for_one_ns() const {
    return std::max<std::int64_t>(1, (deadline_ns - process.system.now_ns()) / 10 * 9);
  }
  /// Keeps the first error until the last exchange, which sends it to all ranks.
  void note(Result<void> done) {
    if (!done && !trouble) trouble = std::move(done).error();
  }
};

/// Of a rank's area in the communicator; equal on all ranks.
AreaShape area_shape(const Facts& facts);
/// Maps the area of a rank of this host, or makes one for what is heard of a rank of another. Errors: why it cannot.
Result<void> connect_to(Facts& facts, Rank rank);

}  // namespace start
}  // namespace tutti
