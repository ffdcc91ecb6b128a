// The protocol of a collective whose ranks share memory. Each rank publishes a call descriptor and reads the
// descriptors of its peers, which determine the access to the peers' data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "call/operation.h"
#include "collective/collective_run.h"
#include "collective/published_counts.h"
#include "progress/access_lease.h"

namespace tutti {

class CollectiveInsideHost final : public Operation {
 public:
  /// Both must outlive the operation. The request's turn must have come. `published`: the number of the call if a
  /// SmallCall has published its descriptor.
  CollectiveInsideHost(Communicator& communicator, const Request& request, std::uint64_t published = 0)
      : communicator_(communicator), request_(request), run_(communicator, request), published_(published) {}

  Result<Progress> advance() override;
  Communicator* communicator() override { return &communicator_; }

  /// Errors: invalid_usage (a mismatch), remote (a rank left).
  Result<void> poll_peers() override;

  /// For example "AllReduce count=8 float32 sum #12, channel 0 step 3, waiting for rank 1".
  std::string where() const override;
  Rank waits_for() const override;

  /// Fails the communicator with `reason`. Peers may access the caller's buffers until take_back_buffers has returned.
  void abandon(const Error& reason) override;
  const void* leased() const override { return leased_; }

 private:
  enum class State { enter, gather, run, done };

  CallDescriptors& descriptors() const { return communicator_.links().descriptors(); }
  CallMemory::Notes& notes() const { return communicator_.memory().notes(); }

  Result<Progress> enter();
  Result<Progress> entered();
  void classify();
  bool gathers_although_inline() const;
  void write_descriptor(CallDescriptor& descriptor);
  void write_payload(std::byte* to, std::size_t bytes) const;

  Result<Progress> gather();
  void read_descriptor(Rank rank, const CallDescriptor& descriptor);
  Access choose_access() const;
  const AccessTable& access_table(bool ordinary) const;

  Result<Progress> start(Access access);
  Result<void> map_windows(const Plan& plan);
  Result<void> map_window(const Place& place);
  Result<Progress> run();

  Communicator& communicator_;
  const Request& request_;
  CollectiveRun run_;
  std::uint64_t published_ = 0;
  State state_ = State::enter;
  Access access_ = Access::slots;
  bool small_ = false;                     // the call is inline because of its size, whether buffers are mapped or not
  bool gathers_ = false;                   // reads the descriptors of all ranks before it starts the plan
  Rank gathered_ = 0;                      // the descriptors of all ranks below this one have been read
  Buffers buffers_;                        // of all ranks below that one
  std::optional<PublishedCounts> counts_;  // of a call with a count per rank
  const void* leased_ = nullptr;
  std::optional<AccessLease> lease_;  // held while the run accesses peers' memory by address
};

/// What a rank says of its buffers in a call descriptor: where they lie, and how peers may reach them. Of a call that
/// is not inline by its size. `ordinary`: the accesses to memory that is not mapped.
void describe_buffers(CallDescriptor& descriptor, Communicator& communicator, const CollectiveRun& run,
                      const AccessTable& ordinary);

}  // namespace tutti
