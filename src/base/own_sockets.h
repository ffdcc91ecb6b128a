// The descriptors of tutti's sockets. A forked child closes them; otherwise it would keep them open after its parent's
// death.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tutti {

/// Data-loader workers live on when the rank that forked them is killed. While one of them held the rank's connections,
/// no peer's system would report that the rank is gone.
///
/// A fork between the call that makes a socket and `add`, or between `remove` and the close, leaves this socket open in
/// the child. The time window is some nanoseconds, and the connection is only beginning or ending. Safe from any
/// thread. vfork and posix_spawn do not run the handler and do not need it: all of tutti's descriptors close on exec.
/// Children made by the system calls clone and clone3 alone, past the C library, do not run it either, and keep the
/// sockets until they end or run another program.
class OwnSockets {
 public:
  /// A descriptor that cannot be recorded for lack of memory stays open in children.
  void add(int fd);
  /// To be called before the close: afterwards the number may be reused.
  void remove(int fd);
  /// Closes all, but shuts none down: the parent uses them too. For the child's only thread, right after the fork;
  /// takes no lock and needs no memory.
  void close_all();

  OwnSockets() = default;
  ~OwnSockets();
  OwnSockets(const OwnSockets&) = delete;
  OwnSockets& operator=(const OwnSockets&) = delete;

 private:
  // A descriptor is any nonnegative int, however small the usual limits are: pages are allocated as numbers appear.
  static constexpr std::size_t page_bits = 16;
  static constexpr std::size_t page_count = std::size_t{1} << (31 - page_bits);
  using Page = std::array<std::atomic<std::uint64_t>, (std::size_t{1} << page_bits) / 64>;
  std::atomic<std::uint64_t>* word(int fd, bool make);

  std::array<std::atomic<Page*>, page_count> pages_{};
  std::atomic<std::size_t> pages_used_ = 0;  ///< no page at or after this index is used
};

/// This process's table; from the first call on, forked children close the sockets in it.
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
  /// A child still closes the descriptor; pass it to `close`.
  int release() { return std::exchange(fd_, -1); }
  static void close(int fd);

 private:
  int fd_ = -1;
};

}  // namespace tutti
