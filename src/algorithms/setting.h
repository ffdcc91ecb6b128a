// What TUTTI_ALGO says of one collective.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"

namespace tutti {

/// Names the user wants, or wants left out. Views into the setting's text.
class AlgorithmFilter {
 public:
  AlgorithmFilter(std::string_view forced, Collective collective);
  bool allows(const Algorithm& algorithm) const;
  /// The words for those wanted; none where words say what is not.
  std::vector<std::string_view> wanted() const;

 private:
  std::string_view names_;  // separated by commas; empty: anything goes
  bool exclude_ = false;
};

/// Whether `word` is a name of `algorithm`, its family's included.
bool names(std::string_view word, const Algorithm& algorithm);

}  // namespace tutti
