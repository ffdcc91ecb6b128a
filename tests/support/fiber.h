// Functions that stop in the middle and go on later, all on one thread.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <functional>
#include <memory>

#include <ucontext.h>

namespace tutti::testing {

/// resume() runs `body` until it calls suspend() or ends. A fiber that is destroyed before its end leaves what is on
/// its stack undestroyed.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  bool ended() const { return ended_; }
  void resume();
  void suspend();  ///< by the body

 private:
  static void enter(unsigned low, unsigned high);
  void leave();

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t begin_;
  ucontext_t home_;
  std::jmp_buf inside_;
  std::jmp_buf outside_;
  bool begun_ = false;
  bool ended_ = false;
  void* fake_stack_inside_ = nullptr;  // AddressSanitizer's
  void* fake_stack_outside_ = nullptr;
  const void* home_stack_ = nullptr;
  std::size_t home_stack_bytes_ = 0;
};

}  // namespace tutti::testing
