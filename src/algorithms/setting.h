// What TUTTI_ALGO says of one collective.
#pragma once

#include <string_view>

#include "algorithms/algorithm.h"

namespace tutti {

/// Names the user wants, or wants left out. Views into the setting's text.
class Wish {
 public:
  Wish(std::string_view forced, Collective collective);
  bool allows(const Algorithm& algorithm) const;

 private:
  std::string_view names_;  // separated by commas; empty: anything goes
  bool exclude_ = false;
};

}  // namespace tutti
