// Who served what: how often each MPI function went to tutti, and why it did not.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

namespace tutti::mpi {

enum class Function {
  barrier,
#define FUNCTION(Name, name, ...) name,
#include "adapters/mpi/functions.inc"
#undef FUNCTION
};
inline constexpr int function_count = static_cast<int>(Function::exscan) + 1;

/// What became of a call. All ranks of a communicator come to the same.
enum class Outcome {
  tutti,
  one_rank,           ///< nobody to talk to: copied here
  nothing,            ///< no data on any rank
  intercommunicator,  ///< from here on: MPI serves it, because …
  other_world,        ///< ranks that may run without tutti
  type,               ///< no dense type of a reduction
  operation,          ///< an operator that does not apply to the type
  large,              ///< too long for an operator that tutti lacks
  not_started,        ///< a non-blocking call before the communicator's first blocking one
  no_start,           ///< tutti could not start on this communicator
  arguments,          ///< wrong: MPI says how
};
inline constexpr int outcome_count = 11;
inline bool served(Outcome outcome) {
  return outcome <= Outcome::nothing;
}

class Statistics {
 public:
  using Numbers = std::array<long, static_cast<std::size_t>(function_count * 2 * outcome_count)>;

  void count(Function function, bool waits, Outcome outcome) {
    numbers_[index(function, waits, outcome)].fetch_add(1, std::memory_order_relaxed);
  }
  Numbers numbers() const;

  /// A table of the numbers of `ranks` ranks together, a line per function that was called.
  static std::string text(const Numbers& numbers, int ranks);

 private:
  static constexpr std::size_t index(Function function, bool waits, Outcome outcome) {
    return (static_cast<std::size_t>(function) * 2 + (waits ? 0 : 1)) * outcome_count +
           static_cast<std::size_t>(outcome);
  }
  std::array<std::atomic<long>, static_cast<std::size_t>(function_count * 2 * outcome_count)> numbers_{};
};

}  // namespace tutti::mpi
