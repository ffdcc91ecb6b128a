// Chooses the fastest of several algorithms, for every size of call.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "choice/cost.h"

namespace tutti {

/// Up to this many ranks, the plans of all of them are walked through (Cost); of more ranks, the steps of some
/// (StepCost).
inline constexpr int walked_ranks_max = 16;

/// The prediction for one candidate and one call size.
struct Prediction {
  const Algorithm* algorithm = nullptr;
  double us = 0;
  int steps = 0;
  std::size_t bytes = 0;  ///< that the busiest rank takes from others and gives to others
};

/// Predictions for all candidates, the fastest first. `bytes`: of the largest buffer of one rank. Builds every
/// schedule.
std::vector<Prediction> predictions(const Shape& shape, Access access, std::size_t bytes,
                                    std::span<const Algorithm* const> candidates, const Machine& machine,
                                    const Conditions& conditions);

/// The algorithm to use for each size. All sizes between two powers of two use the same one: the best for the smallest
/// of them.
class Envelope {
 public:
  /// The fastest of the candidates, of which there must be at least one; among those within a hundredth, the first.
  /// Evaluated at every fourth size from 16 bytes to 1 GiB, and in between where the neighbours differ.
  Envelope(const Shape& shape, Access access, std::span<const Algorithm* const> candidates, const Machine& machine,
           const Conditions& conditions);

  /// The largest size for which times are predicted.
  static constexpr std::size_t bytes_max = std::size_t{1} << 30;

  /// As `text` has described it; nothing if the text is damaged, or names what does not serve such calls.
  static std::optional<Envelope> read(std::string_view text, const Shape& shape, Access access);
  /// A line for each size that was predicted: bytes, µs, algorithm. The same numbers when read.
  std::string text() const;

  /// `bytes`: of the largest buffer of one rank.
  const Algorithm& at(std::size_t bytes) const { return *by_width_[static_cast<std::size_t>(std::bit_width(bytes))]; }
  /// The predicted time of that algorithm at the power of two below; outside 16 bytes to 1 GiB that of the nearest one.
  /// 0 if the only candidate is one of the few whose prediction takes the work of all of many ranks.
  double us(std::size_t bytes) const { return us_[static_cast<std::size_t>(std::bit_width(bytes))]; }

 private:
  Envelope() = default;
  void fill_outside();

  std::array<const Algorithm*, 65> by_width_{};
  std::array<double, 65> us_{};
};

/// Where envelopes are kept from one process to the next. `grounds`: all that an envelope depends on, in any bytes.
struct EnvelopeStore {
  std::function<std::optional<std::string>(std::string_view grounds)> find;
  std::function<void(std::string_view grounds, std::string_view text)> keep;
};

/// True if there is a choice: not for inline calls, which are one pass with any algorithm.
bool is_modelled(const Shape& shape, Access access);

/// The envelopes made so far, for all communicators of a process. Thread-safe.
class Envelopes {
 public:
  /// Before the first envelope is made.
  void use(EnvelopeStore store) { store_ = std::move(store); }
  /// The envelope, which is the same for all roots. `forced`: TUTTI_ALGO. Made on first use, which takes milliseconds,
  /// or found in the store. `counts`: for calls whose groups differ in size, by the size of the largest.
  std::shared_ptr<const Envelope> of(const Shape& shape, Access access, std::string_view forced, const Machine& machine,
                                     const Conditions& conditions, bool counts = false);

 private:
  using Key = std::tuple<Collective, int, std::vector<Level>, std::vector<Rank>, std::vector<std::vector<Rank>>, Access,
                         std::string, std::array<double, Machine::count>, int, int, int, std::size_t, std::vector<int>,
                         std::vector<double>, bool>;

  EnvelopeStore store_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Envelope>> made_;
};

}  // namespace tutti
