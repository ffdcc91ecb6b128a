// A small collective of ranks that share memory, without a plan: publishes the input in the call descriptor, waits for
// the peers' descriptors, and combines them (docs/decisions/0028).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "call/request.h"
#include "comm/communicator.h"
#include "exec/reduce.h"

namespace tutti {

/// The peers cannot tell this call from one that CollectiveInsideHost carries out: the descriptors are the same, and so
/// are the bits of the result.
class SmallCall {
 public:
  /// Both must outlive this object.
  SmallCall(Communicator& communicator, const Request& request)
      : communicator_(communicator),
        request_(request),
        facts_(facts_of(request.collective)),
        has_output_(holds(facts_.output, communicator.rank(), request.root)) {}

  /// Whether such a call of this size has been found to be small: see PastCalls.
  static bool serves(Communicator& communicator, const Request& request) {
    return communicator.past_calls().is_small(request.collective, request.group_bytes()) &&
           request.form == Form::plain && request.op != ReduceOp::pre_mul_sum;
  }

  /// Carries the call out, whose turn must have come. Waits some microseconds for the peers. False: a peer is late, or
  /// its call differs. CollectiveInsideHost must then continue from `published`; nothing has been written yet.
  bool run();
  /// The number of the call if its descriptor was published; otherwise 0.
  std::uint64_t published() const { return sequence_; }

 private:
  bool publish();
  int combined() const;
  void prepare();
  bool open_needed();
  bool open(Rank peer);
  bool await(Rank peer);
  bool yield();
  void finish();
  std::size_t own_part() const;
  const std::byte* input_of(Rank rank) const;

  Communicator& communicator_;
  const Request& request_;
  const CollectiveFacts& facts_;
  const bool has_output_;
  std::uint64_t sequence_ = 0;
  std::size_t input_bytes_ = 0;                      // of a rank that has an input
  std::array<Source, limits::sources_max> sources_;  // NOLINT: only entries of ranks are initialised; of a reduction
  std::byte* output_ = nullptr;
  std::int64_t yielded_ns_ = 0;    // when the last yield ended
  std::optional<SmallPass> pass_;  // of a reduction with an output here
};

}  // namespace tutti
