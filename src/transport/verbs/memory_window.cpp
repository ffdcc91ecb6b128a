#include "transport/verbs/memory_window.h"

#include <cassert>

namespace tutti::verbs {
namespace {

/// The part of a key that its user chooses, and that must change from one use of a window to the next.
constexpr std::uint32_t consumer_key = 0xff;

std::uint32_t next_key(std::uint32_t key) {
  return (key & ~consumer_key) | ((key + 1) & consumer_key);
}

}  // namespace

std::unique_ptr<MemoryWindow> MemoryWindow::make(std::shared_ptr<Endpoint> endpoint) {
  Window* const window = endpoint->port.device->context->ops.alloc_mw(endpoint->pd(), WindowType::two);
  if (window == nullptr) return nullptr;
  return std::unique_ptr<MemoryWindow>(new MemoryWindow(std::move(endpoint), window));
}

std::uint32_t MemoryWindow::open(QueuePair& queue, Mr& mr, std::span<std::byte> memory) {
  assert(is_closed());
  window_->rkey = key_;  // by its last key the device knows the window
  key_ = next_key(key_);
  queue.add_bind(*window_, key_, mr, memory);
  queue_ = &queue;
  closing_ = false;
  return key_;
}

void MemoryWindow::close() {
  assert(queue_ != nullptr && !closing_);
  queue_->add_invalidate(key_);
  closing_ = true;
  closed_at_ = queue_->added();
}

}  // namespace tutti::verbs
