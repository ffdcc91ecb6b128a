// Which pass a copy can be merged with: what passes have last done with each block of a plan.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/place_numbers.h"
#include "plan/plan.h"

namespace tutti {

/// Is told of waits and passes in the order of the plan. Actions and places are named by their index in the plan.
class LastPasses {
 public:
  static constexpr int none = -1;

  explicit LastPasses(const Plan& plan);

  void waits(int action) { waited_ = action; }
  /// `pass`, which stays, reads and writes what `action` names.
  void runs(int pass, const Action& action);
  /// `pass` writes a place of its own or of a copy that was merged with it.
  void writes(int pass, std::size_t place) {
    touched_[numbers_.memory(place)] = written_[numbers_.memory(place)] = made_[numbers_.name(place)] = pass;
  }

  /// The pass to merge with, or none: the last pass that wrote the source of `copy`, if no action in between conflicts
  /// with the copy. For accesses other than slots, also another copy of the same source. A pass in between conflicts if
  /// it touches the copy's destination or writes its source; so does any wait.
  int maker_of(const Plan& plan, const Action& copy) const;

 private:
  PlaceNumbers numbers_;
  // By number of the block: the last pass that …
  std::vector<int> touched_;  // … reads or writes it
  std::vector<int> written_;  // … writes it
  std::vector<int> made_;     // … writes it under this name
  std::vector<int> copied_;   // … copies it under this name
  int waited_ = none;         // the last wait
};

}  // namespace tutti
