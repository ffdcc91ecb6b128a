// What the program wants done by a thread of its own that waits in a call: see tuttiConfig_t::progress.
#pragma once

namespace tutti {

struct WhileWaiting {
  void (*progress)(void* context) = nullptr;  ///< null: nothing
  void* context = nullptr;

  explicit operator bool() const { return progress != nullptr; }
  void operator()() const { progress(context); }
};

}  // namespace tutti
