// All-reduces of float32 by ranks of one thread on one GPU: by tutti, or by another library beside it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "perf/gpu.h"
#include "perf/gpu/queue.h"

namespace perf {

/// What ranks sum up: rank r has r + 1 everywhere.
class Sums {
 public:
  /// Room for `bytes_max` per rank and direction. `gpu` must be current, and live as long.
  Sums(const Gpu& gpu, std::size_t ranks, std::size_t bytes_max);
  ~Sums();
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  /// Calls are of so many bytes from now on; no output has its sums yet.
  void begin(std::size_t bytes);
  /// Ends the program unless all outputs are the sums of all inputs. What was queued must have ended.
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
  /// Queues one all-reduce, rank i's part of it on stream i.
  virtual void call(const Sums& sums, const GpuQueue& queue) const = 0;
  /// What carried out the last call, one word.
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
