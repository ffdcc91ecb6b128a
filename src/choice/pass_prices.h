// How long each pass of a plan takes, in a call of one size.
#pragma once

#include <cstddef>
#include <optional>

#include "choice/memory_use.h"

namespace tutti {

/// Of one tile. The time of a pass depends on how many bytes it reads and writes, and on their owners.
class PassPrices {
 public:
  /// All outlive this. `loops`: the machine's. `conditions`: `hosts` is of all ranks or empty.
  PassPrices(const Machine& machine, const LoopTable& loops, const Conditions& conditions, const CallCosts& call,
             int ranks);

  double us(const Plan& plan, const Action& action) const;

 private:
  double operand_us(const Plan& plan, const Place& place, bool read) const;
  double pulled_write_us() const;
  std::optional<std::size_t> measured_loop(const Plan& plan, const Action& action) const;
  double link_us(const Plan& plan, const Place& place, bool read) const;

  const Machine& machine_;
  const LoopTable& loops_;
  const Conditions& conditions_;
  const CallCosts& call_;
  std::size_t footprint_;  ///< by which loops are chosen
  double write_pulled_;    ///< µs a byte
};

}  // namespace tutti
