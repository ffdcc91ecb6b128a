// Handles given to users. A stale or invalid handle is recognised, and closing a handle waits for calls that use it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/system.h"

namespace tutti {

/// A table of T behind opaque pointers. A handle holds an index and a generation, so a closed handle is never taken for
/// an open one. Opening and closing take a lock; using a handle costs two atomic additions.
template <class T>
class HandleTable {
  struct Slot;

 public:
  ~HandleTable() {
    for (auto& chunk : chunks_) delete[] chunk.load();
  }

  /// One use of an open handle. The object lives at least until its last Use ends.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (slot_ != nullptr) slot_->inside.fetch_sub(1, std::memory_order_release);
    }
    explicit operator bool() const { return slot_ != nullptr; }
    T* operator->() const { return slot_->value.get(); }
    T& operator*() const { return *slot_->value; }
    const std::shared_ptr<T>& shared() const { return slot_->value; }

   private:
    friend class HandleTable;
    explicit Use(Slot* slot) : slot_(slot) {}
    Slot* slot_ = nullptr;
  };

  /// Whether the value has the form of a tutti handle, open or closed.
  static bool is_handle(const void* handle) { return (reinterpret_cast<std::uintptr_t>(handle) & 0xff) == mark; }

  /// Returns a handle for `value`; nullptr if the table is full.
  void* open(std::shared_ptr<T> value) {
    const std::lock_guard lock(mutex_);
    std::uint32_t index;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      if (next_ == chunk_slots * chunk_count) return nullptr;
      index = next_++;
      auto& chunk = chunks_[index / chunk_slots];
      if (chunk.load(std::memory_order_relaxed) == nullptr)
        chunk.store(new Slot[chunk_slots], std::memory_order_release);
    }
    Slot& slot = *find(index);
    slot.value = std::move(value);
    const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;  // odd: open
    slot.generation.store(generation, std::memory_order_seq_cst);
    return reinterpret_cast<void*>((static_cast<std::uintptr_t>(generation) << 24) | (index << 8) | mark);
  }

  /// Begins a use; the result converts to false if the handle is not open.
  Use use(const void* handle) {
    Slot* const slot = slot_of(handle);
    if (slot == nullptr) return {};
    slot->inside.fetch_add(1, std::memory_order_seq_cst);
    Use use(slot);
    if (slot->generation.load(std::memory_order_seq_cst) != generation_of(handle)) return {};
    return use;
  }

  /// Closes the handle to new uses and waits at most `limit_ns` for uses under way. Returns the object, or null if the
  /// handle is not open. If a use lasts longer than the limit, the table keeps the slot and the object.
  std::shared_ptr<T> close(System& system, const void* handle, std::int64_t limit_ns = 1'000'000'000) {
    Slot* const slot = slot_of(handle);
    if (slot == nullptr) return nullptr;
    std::uint32_t generation = generation_of(handle);
    if (!slot->generation.compare_exchange_strong(generation, generation + 1, std::memory_order_seq_cst))
      return nullptr;
    const std::int64_t deadline = system.now_ns() + limit_ns;
    while (slot->inside.load(std::memory_order_acquire) != 0) {
      if (system.now_ns() > deadline) return slot->value;
      system.yield();
    }
    const std::lock_guard lock(mutex_);
    free_.push_back(index_of(handle));
    return std::move(slot->value);
  }

 private:
  static constexpr std::uint32_t chunk_slots = 256;
  static constexpr std::uint32_t chunk_count = 256;
  static constexpr std::uintptr_t mark = 0x75;  // odd: no real pointer looks like this

  struct Slot {
    std::atomic<std::uint32_t> generation = 0;
    std::atomic<std::uint32_t> inside = 0;
    std::shared_ptr<T> value;
  };

  static std::uint32_t index_of(const void* handle) { return (reinterpret_cast<std::uintptr_t>(handle) >> 8) & 0xffff; }
  static std::uint32_t generation_of(const void* handle) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) >> 24);
  }
  Slot* find(std::uint32_t index) {
    Slot* const chunk = chunks_[index / chunk_slots].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + index % chunk_slots;
  }
  Slot* slot_of(const void* handle) {
    if ((reinterpret_cast<std::uintptr_t>(handle) & 0xff) != mark || generation_of(handle) % 2 == 0) return nullptr;
    return find(index_of(handle));
  }

  std::array<std::atomic<Slot*>, chunk_count> chunks_{};
  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 0;
};

}  // namespace tutti
