// A communicator, from the view of one rank.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "call/access.h"
#include "call/background.h"
#include "call/request.h"
#include "call/small_calls.h"
#include "comm/call_history.h"
#include "comm/channels.h"
#include "comm/device_side.h"
#include "comm/loss.h"
#include "comm/membership.h"
#include "comm/peer_windows.h"
#include "comm/plans.h"
#include "comm/prediction_check.h"
#include "comm/waits.h"
#include "exec/run.h"

namespace tutti {

class CallComparison;

/// Since when which ranks of a communicator are gone: their processes have ended, or they have failed or are lost.
/// The service thread marks, any thread reads. A mark stays.
class GoneRanks {
 public:
  explicit GoneRanks(int ranks) : since_ns_(static_cast<std::size_t>(ranks)), mute_(static_cast<std::size_t>(ranks)) {}

  /// `mute`: its process lives, but is no rank any more.
  void mark(Rank rank, std::int64_t now_ns, bool mute = false) {
    if (mute) mute_[static_cast<std::size_t>(rank)].store(true, std::memory_order_relaxed);
    std::int64_t never = 0;
    since_ns_[static_cast<std::size_t>(rank)].compare_exchange_strong(never, now_ns, std::memory_order_acq_rel);
    any_.store(true, std::memory_order_release);
  }
  /// 0: it is not gone.
  std::int64_t since_ns(Rank rank) const {
    return since_ns_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  }
  bool is_mute(Rank rank) const { return mute_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed); }
  bool any() const { return any_.load(std::memory_order_acquire); }

 private:
  std::vector<std::atomic<std::int64_t>> since_ns_;
  std::vector<std::atomic<bool>> mute_;
  std::atomic<bool> any_ = false;
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
  /// Not all ranks share memory: then there are no call descriptors, and all calls use slots.
  bool spans_hosts() const { return members_.spans_hosts(); }

  // ---- Errors: any thread ----

  /// Sets the failure, if there is none yet. Wakes threads that wait in this communicator, and tells peers through the
  /// area's state. On return failed() holds, and kernels have been told to give up.
  void fail(Error error);
  /// As fail, but tells peers that this rank aborted.
  void abort();
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// The first failure. Requires failed().
  Error failure() const;
  /// Notes that a peer is gone, although it has completed calls that this rank has not: these calls do not fail, so
  /// there is no failure yet. Only the first counts.
  void note_loss(Error error);
  /// The failure or, where there is none, the first loss that was noted.
  std::optional<Error> first_error() const;
  GoneRanks& gone() { return gone_; }
  const GoneRanks& gone() const { return gone_; }
  /// Notes that the user gets the failure as the result of a call.
  void mark_reported() { reported_.store(true, std::memory_order_relaxed); }
  Error report_failure() {
    mark_reported();
    return explained_failure();
  }
  /// With what kernels that were under way waited for. Not for threads that anybody waits for. Requires failed().
  Error explained_failure() const;
  bool reported() const { return reported_.load(std::memory_order_relaxed); }

  /// For a rank that leaves: checks that all peers have made the same calls, as far as can be known soon. Waits at most
  /// half a second for peers that have not made this rank's last call yet. Errors: invalid_usage; the loss of a peer
  /// that was noted, as what this rank has not done then is a consequence, which the others are to know.
  Result<void> check_before_leaving();

  // ---- Order: calls run one after another, in the order of their tickets ----

  std::uint64_t take_ticket() { return issued_.fetch_add(1, std::memory_order_relaxed) + 1; }
  bool turn_of(std::uint64_t ticket) const { return completed_.load(std::memory_order_acquire) + 1 >= ticket; }
  /// When a thread that waits for a peer, in whatever call, last said so; 0: none has.
  std::int64_t waited_ns() const { return waited_ns_.load(std::memory_order_relaxed); }
  /// Several threads may wait. `for_whom`: the rank; −1 if the thread cannot tell.
  void begin_wait() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  void note_wait(std::int64_t now_ns, Rank for_whom);
  void end_wait();
  std::uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  void complete() { completed_.fetch_add(1, std::memory_order_acq_rel); }
  bool idle() const { return completed_.load(std::memory_order_acquire) == issued_.load(std::memory_order_acquire); }

  /// The limit of calls that are made now. For the thread that makes calls.
  const CallLimit& call_limit() const { return members_.call_limit; }
  void set_call_limit(const CallLimit& limit) { members_.call_limit = limit; }

  // ---- For the call whose turn it is ----

  std::uint64_t next_sequence() {
    const std::uint64_t next = entered() + 1;
    sequence_.store(next, std::memory_order_relaxed);
    return next;
  }
  /// The number of the last collective call that this rank has entered, or completed. Any thread.
  std::uint64_t entered() const { return sequence_.load(std::memory_order_relaxed); }
  std::uint64_t last_completed() const { return last_completed_->load(std::memory_order_acquire); }
  /// For every collective that has succeeded, before its caller learns of it: peers that find this rank gone will know
  /// that it needs nothing more from them in this call, nor they from it.
  void note_completed(std::uint64_t sequence) { last_completed_->store(sequence, std::memory_order_release); }
  /// If ranks have no call descriptors: sets the mark that is sent before the first message of the call on each
  /// connection.
  void sign(std::uint64_t sequence, const Signature& signature) {
    mark_ = {sequence, signature};
    members_.area->area.header().calls.store(history_->add(mark_));
  }
  /// The last calls signed. Any thread. Requires spans_hosts().
  const CallHistory& history() const { return *history_; }
  /// Null if ranks have call descriptors.
  CallComparison* comparison() const { return comparison_.get(); }
  /// Until when (now_ns) a blocked call may sleep on sockets alone. `awaited`: a peer has yet to open a connection.
  std::int64_t poll_deadline_ns(bool awaited) const;
  CallDescriptors& call_descriptors() { return call_descriptors_; }
  const CallDescriptors& call_descriptors() const { return call_descriptors_; }
  Channels& channels() { return channels_; }
  const Channels& channels() const { return channels_; }
  Doorbell& doorbell() { return members_.area->area.header().doorbell; }
  void ring_all();
  RunContext links();

  Plans& plans() { return plans_; }
  PeerWindows& windows() { return windows_; }
  SmallCalls& small_calls() { return small_calls_; }
  const SmallCalls& small_calls() const { return small_calls_; }
  /// Where calls' times are compared with their predictions; null: they are not.
  PredictionCheck* prediction_check() { return prediction_check_ ? &*prediction_check_ : nullptr; }

  /// At least `bytes` of memory for plans that need it; used by one call at a time.
  Result<std::byte*> scratch(std::size_t bytes);
  /// As scratch, in memory that peers can map: for the copied inputs of in-place all-to-alls.
  Result<std::byte*> staging(std::size_t bytes);

  /// Work that goes on beside the calls; null until there is some. Any thread.
  Background* background() const { return background_.load(std::memory_order_acquire); }
  /// To be called once, by the thread that makes calls.
  void attach(std::unique_ptr<Background> background) {
    background_owned_ = std::move(background);
    background_.store(background_owned_.get(), std::memory_order_release);
  }

  /// Null if this rank has no GPU.
  DeviceSide* device() const { return device_.get(); }
  /// To be called once, before other threads know this communicator.
  void attach(std::unique_ptr<DeviceSide> device) { device_ = std::move(device); }
  /// Fails the communicator if a kernel gave up. Any thread.
  void check_device();
  /// True if no work queued on GPUs is running or will run.
  bool device_idle() const { return !device_ || device_->idle(); }

  /// The access that TUTTI_TRANSPORT asks for, if any.
  std::optional<Access> forced_access() const { return access_facts_.forced; }
  const AccessFacts& access_facts() const { return access_facts_; }
  /// A call's notes on its peers, by rank. Kept here so that a call allocates nothing.
  struct Notes {
    std::vector<const CallDescriptor*> descriptors;
    std::vector<PeerMemory> memory;
    std::vector<std::uint64_t> scalars;
    std::optional<bool> all_mapped;  ///< the buffers of all ranks, in all calls so far that were not small
  };
  Notes& notes() { return notes_; }

  /// Algorithm and transport of the last collective.
  struct Used {
    const char* algorithm = "";
    const char* transport = "";
  };
  /// While calls are in flight, the names may be those of any of them: the thread that queues work for a GPU and the
  /// thread of a stream both note what they use.
  Used used() const {
    return {.algorithm = algorithm_used_.load(std::memory_order_relaxed),
            .transport = transport_used_.load(std::memory_order_relaxed)};
  }
  /// `algorithm` must live as long as the communicator.
  void note_used(const char* algorithm, Access access) {
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a literal
    note_used(algorithm, channels_.transport(access).data());
  }
  /// As above, for a collective on GPUs, whose transports have names of their own.
  void note_used(const char* algorithm, const char* transport) {
    algorithm_used_.store(algorithm, std::memory_order_relaxed);
    transport_used_.store(transport, std::memory_order_relaxed);
  }

  /// The task that watches the peers, on the service thread. Code that ends the communicator must remove it from there.
  void watched_by(std::shared_ptr<Task> watch) { watch_ = std::move(watch); }
  std::shared_ptr<Task> take_watch() { return std::move(watch_); }

  std::string describe(Rank rank) const { return members_.describe(rank); }
  /// The error that a rank is lost; by default as far as its process shows how.
  Error lost(Rank rank, const Loss& loss) const { return loss.error(describe(rank), rank); }
  Error lost(Rank rank) const;
  /// The error that this process has closed descriptors of the library.
  Error lost_descriptors() const;

 private:
  Error understood(Error error) const;
  bool ends_all(const Error& error) const;

  Process& process_;
  Membership members_;
  std::string who_;
  const PassRules pass_rules_;
  CallDescriptors call_descriptors_;
  AccessFacts access_facts_;
  CallMark mark_;
  std::shared_ptr<CallHistory> history_;  // mark_ and history_: if ranks have no call descriptors
  Channels channels_;
  Plans plans_;
  std::optional<PredictionCheck> prediction_check_;
  std::unique_ptr<CallComparison> comparison_;
  std::vector<Doorbell*> doorbells_;

  std::atomic<bool> failed_ = false;
  std::atomic<bool> reported_ = false;
  mutable std::mutex failure_mutex_;
  std::unique_ptr<Error> failure_;
  std::unique_ptr<Error> loss_;             // see note_loss; also under the mutex
  bool left_after_loss_ = false;            // of the thread that has the communicator
  std::atomic<bool> lost_at_rest_ = false;  // no call was under way then
  GoneRanks gone_;

  alignas(64) std::atomic<std::uint64_t> issued_ = 0;
  std::atomic<std::uint64_t> completed_ = 0;
  std::atomic<int> waiting_ = 0;
  std::atomic<std::int64_t> waited_ns_ = 0;
  std::atomic<std::uint64_t> sequence_ = 0;  // written by the thread whose call's turn it is

  SmallCalls small_calls_;
  std::atomic<std::uint64_t>* const last_completed_;  // in this rank's area
  Notes notes_;
  std::vector<std::byte> scratch_;
  GrowingSegment offered_scratch_;  // where peers may read it
  GrowingSegment staging_;

  PeerWindows windows_;
  std::atomic<const char*> algorithm_used_ = "";
  std::atomic<const char*> transport_used_ = "";
  std::shared_ptr<Task> watch_;
  std::unique_ptr<DeviceSide> device_;
  std::unique_ptr<Background> background_owned_;
  std::atomic<Background*> background_ = nullptr;
};

}  // namespace tutti
