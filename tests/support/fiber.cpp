#include "support/fiber.h"

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace tutti::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
constexpr std::size_t stack_bytes = 512 * 1024;
#else
constexpr bool sanitized = false;
constexpr std::size_t stack_bytes = 64 * 1024;
#endif

// AddressSanitizer has to be told which stack it is on.
void start_switch([[maybe_unused]] void** save, [[maybe_unused]] const void* stack,
                  [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(save, stack, bytes);
#endif
}
void finish_switch([[maybe_unused]] void* saved, [[maybe_unused]] const void** stack,
                   [[maybe_unused]] std::size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(saved, stack, bytes);
#endif
}

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(std::make_unique_for_overwrite<std::byte[]>(stack_bytes)) {}

void Fiber::enter(unsigned low, unsigned high) {
  auto* const self = reinterpret_cast<Fiber*>(std::uintptr_t{low} | std::uintptr_t{high} << 32);
  finish_switch(nullptr, &self->home_stack_, &self->home_stack_bytes_);
  self->body_();
  self->ended_ = true;
  self->leave();
}

/// swapcontext asks the kernel about signals each time, which takes most of the time of a switch; after the first time
/// a jump does.
void Fiber::resume() {
  start_switch(&fake_stack_outside_, stack_.get(), stack_bytes);
  if (sanitized || !begun_) {
    if (!begun_) {
      begun_ = true;
      getcontext(&begin_);
      begin_.uc_stack.ss_sp = stack_.get();
      begin_.uc_stack.ss_size = stack_bytes;
      begin_.uc_link = nullptr;
      const auto self = reinterpret_cast<std::uintptr_t>(this);
      makecontext(&begin_, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self),
                  static_cast<unsigned>(self >> 32));
    }
    if (sanitized)
      swapcontext(&home_, &begin_);
    else if (_setjmp(outside_) == 0)
      setcontext(&begin_);
  } else if (_setjmp(outside_) == 0) {
    _longjmp(inside_, 1);
  }
  finish_switch(fake_stack_outside_, nullptr, nullptr);
}

void Fiber::suspend() {
  leave();
}

void Fiber::leave() {
  start_switch(ended_ ? nullptr : &fake_stack_inside_, home_stack_, home_stack_bytes_);
  if (sanitized)
    swapcontext(&begin_, &home_);
  else if (_setjmp(inside_) == 0)
    _longjmp(outside_, 1);
  finish_switch(fake_stack_inside_, &home_stack_, &home_stack_bytes_);
}

}  // namespace tutti::testing
