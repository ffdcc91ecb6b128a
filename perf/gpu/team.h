// All-reduces of float32 by ranks of one thread on one GPU: by tutti, or by another library for comparison.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "perf/gpu.h"
#include "perf/gpu/queue.h"

namespace perf {

/// The data of the ranks: rank r has r + 1 in every element.
class Sums {
 public:
  /// Allocates `bytes_max` per rank and direction. `gpu` must be current and outlive this.
  Sums(const Gpu& gpu, std::size_t ranks, std::size_t bytes_max);
  ~Sums();
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  /// From now on calls have `bytes` bytes; resets all outputs.
  void begin(std::size_t bytes);
  /// Ends the program unless all outputs are the sums of all inputs. All queued work must have ended.
  void check() const;

  std::size_t ranks() const { return inputs_.size(); }
  std::size_t count() const { return count_; }
  const std::byte* input(std::size_t rank) const { return inputs_[rank]; }
  std::byte* output(std::size_t rank) const { return outputs_[rank]; }

 private:
  const Gpu& gpu_;
  std::size_t count_ = 0;
  std::vector<std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

/// Errors end the program.
class Team {
 public:
  virtual ~Team() = default;
  /// Queues one all-reduce, with rank i's part on stream i.
  virtual void call(const Sums& sums, const GpuQueue& queue) const = 0;
  /// The algorithm of the last call, as one word.
  virtual std::string algorithm() const = 0;
};

class TuttiTeam final : public Team {
 public:
  explicit TuttiTeam(std::size_t ranks);
  ~TuttiTeam() override;
  TuttiTeam(const TuttiTeam&) = delete;
  TuttiTeam& operator=(const TuttiTeam&) = delete;

  void call(const Sums& sums, const GpuQueue& queue) const override;
  std::string algorithm() const override;

 private:
  std::vector<tuttiComm_t> comms_;
};

}  // namespace perf
