#include "base/own_sockets.h"

#include <pthread.h>
#include <unistd.h>

#include <bit>
#include <new>

#include "base/uncancelled.h"

namespace tutti {

OwnSockets::~OwnSockets() {
  for (auto& page : pages_) delete page.load(std::memory_order_relaxed);
}

std::atomic<std::uint64_t>* OwnSockets::word(int fd, bool make) {
  const auto number = static_cast<std::size_t>(fd);
  const std::size_t nth = number >> page_bits;
  Page* page = pages_[nth].load(std::memory_order_acquire);
  if (page == nullptr && make) {
    auto* const fresh = new (std::nothrow) Page{};
    if (fresh == nullptr) return nullptr;
    std::size_t used = pages_used_.load(std::memory_order_relaxed);
    while (used <= nth && !pages_used_.compare_exchange_weak(used, nth + 1)) {
    }
    if (pages_[nth].compare_exchange_strong(page, fresh, std::memory_order_acq_rel))
      page = fresh;
    else
      delete fresh;
  }
  return page == nullptr ? nullptr : &(*page)[(number & ((std::size_t{1} << page_bits) - 1)) / 64];
}

void OwnSockets::add(int fd) {
  if (fd < 0) return;
  if (auto* const at = word(fd, true)) at->fetch_or(std::uint64_t{1} << (fd % 64));
}

void OwnSockets::remove(int fd) {
  if (fd < 0) return;
  if (auto* const at = word(fd, false)) at->fetch_and(~(std::uint64_t{1} << (fd % 64)));
}

void OwnSockets::close_all() {
  const std::size_t used = pages_used_.load();
  for (std::size_t nth = 0; nth < used; ++nth) {
    Page* const page = pages_[nth].load(std::memory_order_acquire);
    if (page == nullptr) continue;
    for (std::size_t i = 0; i < page->size(); ++i)
      for (std::uint64_t left = (*page)[i].exchange(0); left != 0; left &= left - 1)
        ::close(static_cast<int>((nth << page_bits) + i * 64 + static_cast<std::size_t>(std::countr_zero(left))));
  }
}

namespace {

OwnSockets& socket_table() {
  // A static object, since the handler that runs in a forked child takes no argument. Never destroyed: the service
  // thread may still close sockets while the process exits.
  static auto& sockets = *new OwnSockets;
  return sockets;
}

}  // namespace

OwnSockets& own_sockets() {
  OwnSockets& sockets = socket_table();
  // Registered only once the table exists: if a fork interrupted its construction, the child would wait for it forever.
  [[maybe_unused]] static const int known = ::pthread_atfork(nullptr, nullptr, [] { socket_table().close_all(); });
  return sockets;
}

void UniqueSocket::close(int fd) {
  if (fd < 0) return;
  const Uncancelled whole;
  own_sockets().remove(fd);
  ::close(fd);
}

}  // namespace tutti
