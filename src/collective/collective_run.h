// The part of a collective on host memory that is common to all protocols: its number, its input, its plan, its run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "call/layout.h"
#include "call/request.h"
#include "comm/communicator.h"
#include "exec/run.h"

namespace tutti {

/// To be called in this order: begin, choose, start, under_way, finish. Must not be moved.
class CollectiveRun {
 public:
  /// Both must outlive this object.
  CollectiveRun(Communicator& communicator, const Request& request) : communicator_(communicator), request_(request) {}
  CollectiveRun(const CollectiveRun&) = delete;
  CollectiveRun& operator=(const CollectiveRun&) = delete;

  /// Takes the communicator's next sequence number, unless a SmallCall has taken `sequence`. Errors: invalid_usage
  /// (another rank makes the same call by kernels), system (no memory for a copy of the input, or for the output).
  Result<void> begin(std::uint64_t sequence = 0);
  /// 0 before begin().
  std::uint64_t sequence() const { return sequence_; }
  const Shape& shape() const { return shape_; }
  const CallSize& size() const { return size_; }

  /// The caller's input, or its copy if Request::copies_input.
  const std::byte* input() const { return input_; }
  std::size_t input_bytes() const;
  /// The caller's output, or memory aside if Request::output_aside.
  std::byte* output() const { return output_; }
  std::size_t output_bytes() const;

  /// Whether the call may use this access. A plan from TUTTI_PLAN_FILE is used unchanged and may not support every
  /// access, nor may the algorithms of a deterministic communicator; slots are always possible.
  bool may_use(Access access) const;
  /// For a call with a count per rank, once the counts are known: sets the number of elements of the largest group.
  void set_largest_count(std::size_t count);

  /// This rank's plan, which lives as long as the communicator.
  const Plan& choose(Access access);
  /// Binds the plan to the buffers in the communicator's notes. `factors`: a pre-multiplied sum uses the factors in the
  /// peers' call descriptors; false: this rank's factor for all ranks. Errors: system (no memory for the plan).
  Result<void> start(const Plan& plan, bool factors);
  /// The call is inline because of its size: a SmallCall may serve the next ones.
  void note_small();
  /// Requires that it was started.
  Run& under_way() { return *run_; }
  const Run& under_way() const { return *run_; }
  /// It is done: the output is where the caller wants it.
  void finish();
  /// The rank that the run waits for; −1: none, or the run was not started.
  Rank waiting_for() const { return run_ ? run_->waiting_for().peer : -1; }

  /// For example "AllReduce count=8 float32 sum #12".
  std::string name() const;
  /// For example ", channel 0 step 3, waiting for rank 1"; empty if the run was not started.
  std::string position_text() const;

 private:
  Result<void> copy_input();
  Result<void> put_output_aside();
  void compare_with_prediction(PredictionCheck& check);
  std::int64_t now_ns() const { return communicator_.process().system.now_ns(); }

  Communicator& communicator_;
  const Request& request_;
  std::uint64_t sequence_ = 0;
  Shape shape_;
  CallSize size_;           // with a count per rank: of the largest group, once known
  std::size_t count_ = 0;   // elements of a group, or of the largest one
  bool from_file_ = false;  // uses the plan from TUTTI_PLAN_FILE
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  Access access_ = Access::slots;
  Binding binding_;
  std::optional<Run> run_;
  PredictionCheck* check_ = nullptr;  // where the time of this call is compared with its prediction
};

}  // namespace tutti
