// A memory window (type 2): a part of registered memory that the peer of one queue pair may write, as long as the
// window is open. Requests of the queue pair open and close it, without a system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/verbs/queue_pair.h"

namespace tutti::verbs {

class MemoryWindow {
 public:
  /// Null: the device has no more windows.
  static std::unique_ptr<MemoryWindow> make(std::shared_ptr<Endpoint> endpoint);
  /// The window ends, even if it is open.
  ~MemoryWindow() { (void)window_->context->ops.dealloc_mw(window_); }
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  /// Adds the request that opens the window on `memory`, which is part of `mr`; returns the key for the peer. Requires
  /// space in the queue, and that the window is closed.
  std::uint32_t open(QueuePair& queue, Mr& mr, std::span<std::byte> memory);
  /// Adds the request that closes the window. Requires space in the same queue.
  void close();
  /// The window is open until the device has carried out that request.
  bool is_closed() const {
    return queue_ == nullptr || (closing_ && static_cast<std::int32_t>(queue_->completed() - closed_at_) >= 0);
  }

 private:
  MemoryWindow(std::shared_ptr<Endpoint> endpoint, Window* window)
      : endpoint_(std::move(endpoint)), window_(window), key_(window->rkey) {}

  std::shared_ptr<Endpoint> endpoint_;
  Window* window_;
  std::uint32_t key_;
  QueuePair* queue_ = nullptr;  // which opened it
  bool closing_ = false;
  std::uint32_t closed_at_ = 0;  // number of the request that closes it
};

}  // namespace tutti::verbs
