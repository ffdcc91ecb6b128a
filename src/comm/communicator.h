// A group of ranks that work together: what one rank has of it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "algorithms/choice.h"
#include "algorithms/rank_order.h"
#include "call/access.h"
#include "call/request.h"
#include "comm/autotune.h"
#include "comm/call_history.h"
#include "comm/control_links.h"
#include "comm/device_side.h"
#include "comm/remote_channel.h"
#include "comm/signed_fifo.h"
#include "exec/run.h"
#include "net/arrivals.h"
#include "plan/cache.h"
#include "process/process.h"

namespace tutti {

class CallComparison;

/// A rank as seen from here.
struct Peer {
  std::uint64_t token = 0;  ///< of its process
  int pid = 0;              ///< as it names itself, for messages: in its own PID namespace
  std::string host;
  std::string fd_server;
  ProcessKey key{};
  SegmentName area_name;
  std::shared_ptr<OwnedArea> thread_area;  ///< what keeps its area there: of a rank of this process,
  SharedMapping mapped_area;               ///<   or of another one
  std::shared_ptr<MirroredHeader> mirror;  ///< of a rank of another host: all there is of its area
  RankArea area;
  bool same_process = false;
  std::shared_ptr<PeerProcess> process;  ///< of a rank of this host in another process
  std::vector<PeerAddress> addresses;    ///< of a rank of another host: where to connect to it

  bool remote() const { return mirror != nullptr; }
  /// For system calls; 0: it has none in this PID namespace.
  int visible_pid() const { return process ? process->pid() : 0; }
};

/// What a communicator is made of; Join fills it in.
struct Membership {
  Rank rank = 0;
  int ranks = 1;
  std::string name;  ///< for messages: "comm 1f3a"
  bool deterministic = false;
  std::int64_t init_limit_ms = 0;
  std::shared_ptr<OwnedArea> area;
  std::vector<Peer> peers;                ///< by rank, self included
  std::vector<int> hosts;                 ///< by rank: the first rank that shares memory with it
  bool pulls = false;                     ///< every rank may copy from every process
  bool oversubscribed = false;            ///< more ranks than cores, on this rank's machine
  int cores = 1;                          ///< that the ranks may run on, all together
  Machine machine;                        ///< rank 0's: all ranks choose by the same numbers
  int sockets = 1;                        ///< connections to a rank of another host, per channel
  std::shared_ptr<Arrivals> arrivals;     ///< where there are other hosts: connections from there,
  std::shared_ptr<ControlLinks> control;  ///<   and those that carry the state of ranks
  cuda::SharedGpu gpu;                    ///< of this rank; null: it knows host memory alone
  bool gpus_reach = false;                ///< every rank's GPU has proven that it reaches every other rank's memory

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
  std::string describe(Rank rank) const;
};

class Communicator {
 public:
  Communicator(Process& process, Membership members);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Process& process() const { return process_; }
  Rank rank() const { return members_.rank; }
  int ranks() const { return members_.ranks; }
  const Membership& members() const { return members_; }
  const std::string& who() const { return who_; }  ///< "comm 1f3a rank 2"
  /// Not all ranks share memory: then there are no call descriptors, and all calls go by fifos.
  bool spans_hosts() const { return members_.spans_hosts(); }
  /// What a message through fifos may have at most; alike on all ranks.
  std::size_t slot_bytes() const { return slot_bytes_; }

  // ---- Errors: any thread ----

  /// The first failure wins; wakes whoever waits here and tells peers through the area's state.
  void fail(Error error);
  /// As fail, but peers are told that this rank left on purpose.
  void abort();
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// The first failure. Requires failed().
  Error failure() const;
  /// The user gets the failure as the result of a call.
  void say_told() { told_.store(true, std::memory_order_relaxed); }
  Error tell_failure() {
    say_told();
    return failure();
  }
  bool told() const { return told_.load(std::memory_order_relaxed); }

  /// For a rank that leaves: whether all others have called the same, as far as can be told soon. It waits at most half
  /// a second, for those who have not come to its last call. Errors: invalid_usage.
  Result<void> look_before_leaving();

  // ---- Order: calls run one after another, in the order of their tickets ----

  std::uint64_t take_ticket() { return issued_.fetch_add(1, std::memory_order_relaxed) + 1; }
  bool turn_of(std::uint64_t ticket) const { return completed_.load(std::memory_order_acquire) + 1 >= ticket; }
  std::uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  void complete() { completed_.fetch_add(1, std::memory_order_acq_rel); }
  bool idle() const { return completed_.load(std::memory_order_acquire) == issued_.load(std::memory_order_acquire); }

  // ---- For the call whose turn it is ----

  std::uint64_t next_sequence() { return ++sequence_; }
  /// Where ranks have no call descriptors: what goes before the first message of the call on each connection.
  void sign(std::uint64_t sequence, const Signature& signature) {
    mark_ = {sequence, signature};
    members_.area->area.header().calls.store(history_->add(mark_));
  }
  /// The calls signed last. Any thread. Requires spans_hosts().
  const CallHistory& history() const { return *history_; }
  /// Null where ranks have call descriptors.
  CallComparison* comparison() const { return comparison_.get(); }
  /// Adds the handles of connections being opened. True while there are any that a peer is to open.
  bool opening(std::vector<PollItem>& items) const;
  /// How long (now_ns) a blocked call may sleep on sockets alone. `awaited`: a peer is to open a connection.
  std::int64_t nap_until(bool awaited) const;
  CallDescriptors& lines() { return lines_; }
  std::span<Channel> channels() { return channels_; }
  Channel& point_to_point_channel() { return point_to_point_; }
  Doorbell& doorbell() { return members_.area->area.header().doorbell; }
  void ring_all();
  Links links();

  /// The plan for a call of `bytes` at most per buffer, made on first use. `counts`: its groups differ in size, and the
  /// largest has so many bytes.
  const Plan& plan(const Shape& shape, Access access, std::size_t bytes, bool counts);
  /// What it would use if nothing was tuned.
  const Algorithm& algorithm(const Shape& shape, Access access, std::size_t bytes, bool counts);
  /// What TUTTI_ALGO says; of a deterministic communicator, those of the one order of reduction.
  std::string filter(Collective collective, Access access);
  Autotuner& autotuner() { return autotuner_; }
  /// The shape with what all of this communicator have in common: the hosts, where there are several.
  Shape with_levels(const Shape& shape) const;
  /// What the choice goes by besides the shape: alike on all ranks.
  Conditions conditions() const;

  /// The same of the plan of TUTTI_PLAN_FILE, which must serve the shape and be carried by `access`.
  const Plan& plan_from_file(const Shape& shape, Access access);

  /// Whether what settings ask for is what a deterministic communicator may use. Errors: invalid_usage.
  Result<void> check_algorithms();

  /// At least `bytes` of private memory for plans that want it; one call at a time.
  Result<std::byte*> scratch(std::size_t bytes);
  /// The same in memory that peers can map: inputs of all-to-alls in place.
  Result<std::byte*> staging(std::size_t bytes);

  /// `bytes` of `peer`'s memory as its call descriptor names it: mapped, or nullptr where it can only be copied from.
  /// The line is taken by value: the peer can still write to its own, and what was checked must be what is used.
  Result<std::byte*> window(Rank peer, BufferDescriptor line, std::size_t bytes);

  /// Forgets the mappings of `peer`'s process when it has freed segments since (`retired`: its count, from a call
  /// line).
  void drop_if_retired(Rank peer, std::uint32_t retired);

  /// Null where this rank has no GPU.
  DeviceSide* device() const { return device_.get(); }
  /// Once, before anybody else knows this communicator.
  void attach(std::unique_ptr<DeviceSide> device) { device_ = std::move(device); }
  /// A kernel that gave up is a failure of the communicator, as is a GPU that is lost. Any thread.
  void look_at_device();
  /// Nothing that was queued on GPUs runs any more, or ever will.
  bool device_idle() const { return !device_ || device_->idle(); }

  /// What TUTTI_TRANSPORT says: nothing for "auto".
  std::optional<Access> forced_access() const { return forced_access_; }
  /// What TUTTI_ALGO says.
  const std::string& forced_algorithms() const { return forced_algorithms_; }
  AccessFacts access_facts() const;
  /// What limits calls by that access, for people: fifos that go on as sockets are called so. A literal.
  std::string_view transport(Access access) const;

  /// Where a call keeps what it knows of its peers: here, so that a call allocates nothing. By rank.
  struct Notes {
    std::vector<const CallDescriptor*> lines;
    std::vector<PeerMemory> memory;
    std::vector<std::uint64_t> scalars;
  };
  Notes& notes() { return notes_; }

  /// What the last collective used.
  struct Used {
    const char* algorithm = "";
    const char* transport = "";
  };
  Used used;

  /// Set by Join; whoever ends the communicator takes it from the service thread.
  std::shared_ptr<Task> watch;

  std::string describe(Rank rank) const { return members_.describe(rank); }
  /// The error that says that a rank is lost, and why.
  Error lost(Rank rank,
             std::string_view why = "its process was killed or exited without leaving the communicator") const;

 private:
  /// For what a call may still have to set up: a connection, a mapping.
  std::int64_t init_limit_ns() const { return process_.config.integer("TUTTI_INIT_TIMEOUT_MS") * 1'000'000; }
  Error understood(Error error) const;
  void open_channels();
  void open_peer(Channel& channel, int index, Rank peer, bool is_signed);
  int slots() const;
  const Algorithm& algorithm_for_counts(const Shape& shape, Access access, std::size_t bytes);
  const Algorithm& tuned(const Shape& shape, Access access, std::size_t bytes);

  Process& process_;
  Membership members_;
  std::string who_;
  std::string forced_algorithms_;
  std::optional<Access> forced_access_;
  RankOrder rank_order_;
  std::size_t nontemporal_bytes_;
  Autotuner autotuner_;
  std::size_t slot_bytes_ = 0;
  CallDescriptors lines_;
  std::vector<Channel> channels_;
  Channel point_to_point_;
  std::vector<std::shared_ptr<RemoteChannel>> remote_channels_;
  CallMark mark_;
  std::shared_ptr<CallHistory> history_;  // both where ranks have no call descriptors
  std::unique_ptr<CallComparison> comparison_;
  std::vector<Doorbell*> doorbells_;

  std::atomic<bool> failed_ = false;
  std::atomic<bool> told_ = false;
  mutable std::mutex failure_mutex_;
  std::unique_ptr<Error> failure_;

  alignas(64) std::atomic<std::uint64_t> issued_ = 0;
  std::atomic<std::uint64_t> completed_ = 0;
  std::uint64_t sequence_ = 0;

  struct PlanKey {
    const Algorithm* algorithm;
    Collective collective;
    Access access;
    Rank root;
    bool operator==(const PlanKey&) const = default;
  };
  struct PlanKeyHash {
    std::size_t operator()(const PlanKey& key) const;
  };
  LruCache<PlanKey, Plan, PlanKeyHash> plans_;
  /// By collective and access, made on first use.
  std::array<std::array<std::shared_ptr<const Envelope>, 4>, collective_count> envelopes_;
  /// For calls whose groups differ in size, once there was one: what select said, by the largest group's power of two.
  using Chosen = std::array<std::array<std::array<const Algorithm*, 65>, 4>, collective_count>;
  std::unique_ptr<Chosen> chosen_for_counts_;

  Notes notes_;
  std::vector<std::byte> scratch_;
  std::byte* staging_ = nullptr;
  std::size_t staging_bytes_ = 0;

  struct Mapped {
    SegmentName name;
    SharedMapping mapping;
  };
  std::vector<std::array<Mapped, 4>> mapped_;  // by peer: the segments its calls named last
  std::vector<unsigned> mapped_next_;
  std::vector<std::uint32_t> retired_seen_;
  std::unique_ptr<DeviceSide> device_;
};

}  // namespace tutti
