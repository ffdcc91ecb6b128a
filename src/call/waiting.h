// How long a call waits, and what its thread does meanwhile.
#pragma once

#include <cstdint>

namespace tutti {

/// How long a call may wait without progress.
struct CallLimit {
  std::int64_t ms = 0;    ///< 0: no limit
  const char* from = "";  ///< what set it, for messages; a literal
};

/// What the program wants done by a thread of its own that waits in a call: see tuttiConfig_t::progress.
struct WhileWaiting {
  void (*progress)(void* context) = nullptr;  ///< null: nothing
  void* context = nullptr;

  explicit operator bool() const { return progress != nullptr; }
  void operator()() const { progress(context); }
};

}  // namespace tutti
