// Memory for one side of a call: poisoned, and with guards around it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::testing {

/// From tuttiMemAlloc, ordinary, or the fake driver's GPU 0, whose memory the host can look at.
enum class Memory { mapped, heap, device };

class Buffer {
 public:
  /// `misaligned`: bytes by which the data misses a page-like alignment. Fails the test when there is no memory.
  Buffer(Memory memory, std::size_t bytes, std::size_t misaligned = 0);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return base_ + guard_bytes + misaligned_; }
  std::size_t bytes() const { return bytes_; }

  /// Data and guards become a pattern that no test uses.
  void poison();
  bool poisoned(std::size_t from, std::size_t bytes) const;
  bool guards_intact() const;

 private:
  static constexpr std::size_t guard_bytes = 256;
  std::byte poison_at(std::size_t offset) const { return static_cast<std::byte>(0xa5 ^ (offset * 7)); }
  bool holds_poison(std::size_t from, std::size_t to) const;
  std::size_t total() const { return bytes_ + misaligned_ + 2 * guard_bytes; }

  Memory memory_;
  std::size_t bytes_;
  std::size_t misaligned_;
  std::byte* base_ = nullptr;
};

}  // namespace tutti::testing
