// One collective under way on one rank: call descriptor, choice of access and plan, run.
#pragma once

#include <optional>
#include <vector>

#include "call/layout.h"
#include "call/operation.h"
#include "call/request.h"
#include "collective/small_gather.h"
#include "comm/communicator.h"
#include "progress/access_lease.h"

namespace tutti {

class CollectiveCall final : public Operation {
 public:
  /// Both must outlive the call; the request's turn must have come.
  CollectiveCall(Communicator& communicator, const Request& request) : communicator_(communicator), request_(request) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }

  /// Errors: invalid_usage (a mismatch), remote (a rank left).
  Result<void> poll_peers() override;

  /// "AllReduce count=8 float32 sum #12, channel 0 step 3, waiting for rank 1"
  std::string where() const override;

  /// Fails the communicator for `reason`. The caller's buffers are its own again after take_back_buffers.
  void abandon(const Error& reason) override;
  const void* leased() const override { return leased_; }

  /// Of sockets to other hosts; where there are none the doorbell is all.
  std::int64_t poll_set(std::vector<PollItem>& items) const override;

 private:
  enum class State { enter, gather, run, done };

  Result<Progress> enter();
  Result<Progress> gather();
  Result<Progress> enter_across_hosts();
  Result<Progress> gather_across_hosts();
  Result<void> look_for_leavers();
  Result<Progress> run();
  std::size_t input_bytes() const;
  std::size_t output_bytes() const;
  bool plan_file_serves() const;
  bool may_use(Access access) const;
  bool compares_first() const;
  void write_descriptor(CallDescriptor& line);
  void write_payload(std::byte* to, std::size_t bytes) const;
  void write_counts(CallDescriptor& line);
  void write_times(CallDescriptor& line) const;
  bool autotuner() const { return communicator_.plans().autotuner().on() && !from_file_ && !request_.layout; }
  std::int64_t now_ns() const { return communicator_.process().system.now_ns(); }
  Result<void> stage_input();
  Result<void> compare_counts();
  Result<void> take_largest_count();
  Access choose_access() const;
  Result<void> map_windows(const Plan& plan);
  Result<void> map_window(Place place);
  Result<BufferDescriptor> block_of(Rank rank, BufferDescriptor line, bool input, std::size_t& bytes) const;
  Result<void> prepare(Access access);

  Communicator& communicator_;
  const Request& request_;
  State state_ = State::enter;
  Access access_ = Access::slots;
  std::uint64_t sequence_ = 0;
  CallSize size_;           // of a count per rank: once all lines are here
  bool from_file_ = false;  // the plan of TUTTI_PLAN_FILE serves it
  bool small_ = false;      // inputs travel in call descriptors whoever the peers are
  bool gathers_ = false;    // all lines are read before anything else
  Rank gathered_ = 0;       // lines of ranks below this one are here
  CountsTally tally_;       // with a count per rank: of those lines
  std::size_t count_ = 0;   // elements of a group, or of the largest one once all lines are here
  bool all_input_mapped_ = true;
  bool all_output_mapped_ = true;
  bool all_carry_ = true;
  const std::byte* input_ = nullptr;
  const void* leased_ = nullptr;
  Shape shape_;
  Binding binding_;
  std::optional<SmallGather> told_;  // with a count per rank and across hosts: what lines would say of the counts,
  bool all_told_ = false;            // and then, since they disagree, all of them
  std::optional<Run> run_;
  std::optional<AccessLease> lease_;  // while access_ goes to peers' memory by address
};

}  // namespace tutti
