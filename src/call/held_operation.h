// Storage for one operation of any kind, so that a call in a group allocates no memory for its operation.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "call/operation.h"

namespace tutti {

class HeldOperation {
 public:
  static constexpr std::size_t bytes = 1728;

  HeldOperation() = default;
  ~HeldOperation() { reset(); }
  HeldOperation(const HeldOperation&) = delete;
  HeldOperation& operator=(const HeldOperation&) = delete;

  template <class T, class... Arguments>
  void emplace(Arguments&&... arguments) {
    static_assert(sizeof(T) <= bytes && alignof(T) <= alignof(std::max_align_t));
    reset();
    held_ = new (storage_) T(std::forward<Arguments>(arguments)...);
  }
  void reset() {
    if (held_ != nullptr) std::exchange(held_, nullptr)->~Operation();
  }

  explicit operator bool() const { return held_ != nullptr; }
  Operation& operator*() const { return *held_; }
  Operation* operator->() const { return held_; }

 private:
  alignas(std::max_align_t) std::byte storage_[bytes];
  Operation* held_ = nullptr;
};

}  // namespace tutti
