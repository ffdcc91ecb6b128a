// How long a call may wait without progress.
#pragma once

#include <cstdint>

namespace tutti {

struct CallLimit {
  std::int64_t ms = 0;    ///< 0: no limit
  const char* from = "";  ///< what set it, for messages; a literal
};

}  // namespace tutti
