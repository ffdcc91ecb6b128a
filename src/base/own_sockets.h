// Which descriptors are sockets of ours: a forked child closes them, for it would keep them open after its parent's
// death.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tutti {

/// Data-loader workers live on when the rank they were forked from is killed. As long as one of them held the rank's
/// connections, no peer would be told by its own system that the rank is gone.
///
/// A fork between the call that makes a socket and `add`, or between `remove` and the close, leaves that one with the
/// child: the window is some nanoseconds, and what stays open then is a connection at its beginning or at its end.
/// Safe from any thread. vfork and posix_spawn go by without it, and need it not: all our descriptors close on exec.
class OwnSockets {
 public:
  /// A descriptor that cannot be kept, for lack of memory, stays with the children.
  void add(int fd);
  /// Before the close: afterwards the number may be somebody else's.
  void remove(int fd);
  /// Closes them all, shuts none down: they are the parent's too. For the child's only thread, right after the fork; it
  /// takes no lock and needs no memory.
  void close_all();

  OwnSockets() = default;
  ~OwnSockets();
  OwnSockets(const OwnSockets&) = delete;
  OwnSockets& operator=(const OwnSockets&) = delete;

 private:
  // A descriptor is any int that is not negative, however small the usual limits are: pages are made as numbers come.
  static constexpr std::size_t page_bits = 16;
  static constexpr std::size_t page_count = std::size_t{1} << (31 - page_bits);
  using Page = std::array<std::atomic<std::uint64_t>, (std::size_t{1} << page_bits) / 64>;
  std::atomic<std::uint64_t>* word(int fd, bool make);

  std::array<std::atomic<Page*>, page_count> pages_{};
  std::atomic<std::size_t> pages_used_ = 0;  ///< none behind
};

/// This process's; its children close what is in it from the first call on.
OwnSockets& own_sockets();

/// A socket with one owner, which a forked child closes.
class UniqueSocket {
 public:
  UniqueSocket() = default;
  explicit UniqueSocket(int fd) : fd_(fd) {
    if (fd_ >= 0) own_sockets().add(fd_);
  }
  UniqueSocket(UniqueSocket&& other) noexcept : fd_(other.release()) {}
  UniqueSocket& operator=(UniqueSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueSocket() { close(release()); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  /// A child closes it all the same; to be given to `close`.
  int release() { return std::exchange(fd_, -1); }
  static void close(int fd);

 private:
  int fd_ = -1;
};

}  // namespace tutti
