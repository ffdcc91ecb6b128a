// The fastest of several algorithms, for every size of call.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/cost.h"

namespace tutti {

/// Up to so many ranks every candidate is built and walked through; of more ranks, `select` says what is used.
inline constexpr int modelled_ranks_max = 16;

/// What is known of one candidate for a call of one size.
struct Prediction {
  const Algorithm* algorithm = nullptr;
  double us = 0;
  int steps = 0;
  std::size_t bytes = 0;  ///< that the busiest rank takes from others and gives to others
};

/// All candidates, the fastest first. `bytes`: of the largest buffer of one rank. Builds every schedule.
std::vector<Prediction> predictions(const Shape& shape, Access access, std::size_t bytes,
                                    std::span<const Algorithm* const> candidates, const Machine& machine,
                                    const Conditions& conditions);

/// What is used at which size: all sizes of one power of two are served alike, by what suits the smallest.
class Envelope {
 public:
  /// What select says.
  Envelope(const Shape& shape, Access access, std::string_view forced);
  /// The fastest of the candidates, of which there is one at least; the first of those within a hundredth. Evaluated
  /// at every fourth size from 16 bytes to 1 GiB, and in between where the neighbours differ.
  Envelope(const Shape& shape, Access access, std::span<const Algorithm* const> candidates, const Machine& machine,
           const Conditions& conditions);

  /// `bytes`: of the largest buffer of one rank.
  const Algorithm& at(std::size_t bytes) const { return *by_width_[static_cast<std::size_t>(std::bit_width(bytes))]; }

 private:
  std::array<const Algorithm*, 65> by_width_{};
};

/// True where there is something to choose: not for calls by lines, which are one pass whoever does it, nor for more
/// ranks than are modelled.
bool is_modelled(const Shape& shape, Access access);

/// Envelopes that were made, for all communicators of a process. Thread-safe.
class Envelopes {
 public:
  /// The same for all roots. `forced`: TUTTI_ALGO. Made on first use, which takes milliseconds.
  std::shared_ptr<const Envelope> of(const Shape& shape, Access access, std::string_view forced, const Machine& machine,
                                     const Conditions& conditions);

 private:
  using Key = std::tuple<Collective, int, std::vector<Level>, Access, std::string, std::array<double, Machine::count>,
                         int, int, int, std::size_t, std::size_t>;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Envelope>> made_;
};

}  // namespace tutti
