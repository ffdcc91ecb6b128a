// The part of TUTTI_ALGO that applies to one collective.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"

namespace tutti {

/// Names of algorithms that the user asks for or excludes. Views into the setting's text.
class AlgorithmFilter {
 public:
  AlgorithmFilter(std::string_view forced, Collective collective);
  bool allows(const Algorithm& algorithm) const;
  /// The names asked for; none if the setting excludes names.
  std::vector<std::string_view> wanted() const { return exclude_ ? std::vector<std::string_view>() : names_; }

 private:
  std::vector<std::string_view> names_;  // empty: no restriction
  bool exclude_ = false;
};

/// Whether `word` is a name of `algorithm` or of its family.
bool names(std::string_view word, const Algorithm& algorithm);

}  // namespace tutti
