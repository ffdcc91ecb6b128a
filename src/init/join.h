// How a rank joins a communicator: a state machine, so that one thread can start several ranks.
#pragma once

#include <memory>
#include <optional>

#include "base/build_id.h"
#include "bootstrap/bootstrap.h"
#include "call/operation.h"
#include "comm/communicator.h"
#include "gpu/gpu_context.h"
#include "init/address_proof.h"
#include "init/control_setup.h"
#include "init/gpu_proof.h"
#include "init/machine_exchange.h"
#include "init/map_exchange.h"
#include "init/peer_info.h"

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

class Join final : public Operation {
 public:
  /// `exchange`: how the ranks exchange what they must know of each other, if they have a way already; null: they meet
  /// at the root of the id. Must outlive this object. Ranks that have a way have the same settings.
  Join(Process& process, JoinOptions options, Exchange* exchange = nullptr);
  /// One that was not advanced even once tells the others that it does not come.
  ~Join() override;

  /// Tells the others why this rank does not go on. To be destroyed next. Does not wait.
  void give_up(const Error& why);

  Result<Progress> advance() override;
  Communicator* communicator() override { return nullptr; }
  WhileWaiting while_waiting() const override { return options_.while_waiting; }

  std::int64_t poll_set(std::vector<PollItem>& items) const override;

  /// Valid after `done`.
  std::shared_ptr<Communicator> take() { return std::move(made_); }

 private:
  /// share: where ranks of one host run as several users; describe: where hosts are not alike; meet: while kernels meet
  /// those of other ranks; carrier, locate, reach:
  /// where not all ranks share memory; prove, compare: where they have several networks; map: where the job's map is
  /// long.
  enum class State { begin, greet, share, describe, meet, carrier, locate, prove, compare, reach, agree, map, made };
  bool is_late() const { return process_.system.now_ns() >= deadline_ns_; }
  Result<Progress> late();
  Result<Progress> end_at_once(Error error);
  Result<Progress> start();
  Error cannot_come(Error why);
  Result<Progress> next();
  void note(Result<void> done);
  Result<void> begin();
  Result<void> locate();
  Result<void> take_addresses();
  void prove();
  void compare();
  Result<void> keep_proven();
  void reach();
  std::optional<Error> cannot_accept();
  Progress advance_reach();
  void state_verdict();
  Result<void> tell_place(PeerInfo& info);
  Result<Progress> describe();
  Result<Progress> greeted();
  Result<void> read_hellos();
  bool same_host(Rank rank) const { return members_.hosts[rank] == members_.hosts[options_.rank]; }
  bool several_users() const;
  std::uint32_t common_transports() const;
  void try_sharing();
  Result<void> separate();
  void offer_gpu(PeerInfo& info);
  void try_gpus();
  int channels_to_meet() const;
  void begin_meeting(int channels);
  void gave_up_meeting(const Result<void>& why);
  void await_meeting();
  Progress advance_meeting();
  std::int64_t next_look_at_meeting_ns() const;
  void keep_gpus(bool meet);
  void count_cores();
  Result<JobMap> map_of_job() const;
  Result<void> connect();
  Result<void> connect_to(Rank rank);
  Result<void> agreed();
  Blob next_map_part(std::size_t bytes_max);
  Result<Progress> take_map(std::span<const std::byte> part);
  Result<void> finish();
  Result<void> get_ready();
  AreaShape area_shape() const;

  Process& process_;
  JoinOptions options_;
  std::int64_t deadline_ns_;
  State state_ = State::begin;
  const int pid_;  ///< a forked child's copy is no rank
  const PendingCloses::Joining joining_;
  const std::unique_ptr<Bootstrap> bootstrap_;  // null: the ranks have a way of their own
  Exchange* const exchange_;
  Membership members_;
  std::vector<PeerInfo> peer_infos_;  ///< by rank; kept until all are connected
  Whereabouts whereabouts_;
  std::optional<MachineExchange> machines_;
  std::optional<MapExchange> map_told_;  ///< of rank 0
  std::optional<MapExchange> map_heard_;
  bool spans_hosts_ = false;
  std::vector<int> networks_;  ///< by rank: the first rank of its host, where hosts are counted by network
  bool pulls_ = true;
  bool reaches_gpus_ = true;
  /// where peers' GPUs may be accessible; kept until all ranks have finished their tests
  std::unique_ptr<GpuProof> gpu_proof_;
  GpuStart gpu_start_;                         // what the proof leaves
  std::shared_ptr<LaunchGroup> gpus_meeting_;  ///< whose kernels meet those of other ranks; null: they do not
  std::int64_t meeting_until_ns_ = 0;
  cpu_set_t cpus_{};              ///< of all ranks on this machine
  std::optional<Error> trouble_;  ///< sent to all ranks in the last exchange
  bool given_up_ = false;         ///< a rank has reported a failure
  std::optional<AddressProof> proof_;
  std::optional<ControlSetup> setup_;
  std::shared_ptr<Communicator> made_;
};

}  // namespace tutti
