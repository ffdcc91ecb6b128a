// Clock, waiting and sockets behind an interface: the real system, or in tests one simulated from a seed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tutti {

class System;

/// A socket with one owner; the handle has a meaning only for its System.
class Socket {
 public:
  Socket() = default;
  Socket(System& system, int handle) : system_(&system), handle_(handle) {}
  Socket(Socket&& other) noexcept : system_(other.system_), handle_(std::exchange(other.handle_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(system_, other.system_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Socket();

  explicit operator bool() const { return handle_ >= 0; }
  int handle() const { return handle_; }

 private:
  System* system_ = nullptr;
  int handle_ = -1;
};

/// "127.0.0.1" or "::1", and a port in host order.
struct SocketAddress {
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const SocketAddress&) const = default;
};

struct PollItem {
  int handle = -1;
  bool want_read = false;
  bool want_write = false;
  bool ready = false;  ///< out: readable or writable as requested, or failed
};

/// Bytes moved by one call; 0 and not closed: the call would have blocked (or is still connecting).
struct Moved {
  std::size_t bytes = 0;
  bool closed = false;
};

/// What TCP knows of the bytes that were sent.
struct Outgoing {
  bool under_way = false;          ///< some are not acknowledged yet
  std::uint64_t acknowledged = 0;  ///< bytes so far
  int again = 0;                   ///< how often, in a row, the first of those under way have been sent again
};

/// Safe from any thread; only `poll` and `wait` block.
class System {
 public:
  virtual ~System() = default;

  /// Monotonic nanoseconds.
  virtual std::int64_t now_ns() = 0;

  /// Sleeps while `word` holds `expected`, until a call of wake for it or until `timeout_ns` have passed. Works across
  /// processes that share the word. May return early; a negative timeout means no limit.
  virtual void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) = 0;
  virtual void wake(std::atomic<std::uint32_t>& word) = 0;

  /// Gives the core to another thread (simulated: lets others run first).
  virtual void yield() = 0;

  /// Waits until an item is ready or `timeout_ns` have passed; -1 waits forever.
  virtual void poll(std::span<PollItem> items, std::int64_t timeout_ns) = 0;

  virtual Result<Socket> listen(const SocketAddress& at) = 0;            ///< port 0: any free one
  virtual Result<SocketAddress> address(const Socket& socket) = 0;       ///< this end
  virtual Result<SocketAddress> peer_address(const Socket& socket) = 0;  ///< the other end, once connected
  /// an empty Socket if no connection is pending
  virtual Result<Socket> accept(Socket& listener) = 0;
  /// Begins to connect. The error of a failing connect is returned here or by the first send or receive.
  virtual Result<Socket> connect(const SocketAddress& to) = 0;
  virtual Result<Moved> send(Socket& socket, std::span<const std::byte> bytes) = 0;
  /// As send, for several pieces, one after the other; there must be at least one, and only the first send_pieces_max
  /// are used.
  virtual Result<Moved> send_pieces(Socket& socket, std::span<const std::span<const std::byte>> pieces) {
    return send(socket, pieces.front());
  }
  static constexpr std::size_t send_pieces_max = 32;
  virtual Result<Moved> receive(Socket& socket, std::span<std::byte> bytes) = 0;
  /// As receive, into two places, one after the other; the second one may be empty.
  virtual Result<Moved> receive_two(Socket& socket, std::span<std::byte> first, std::span<std::byte> second);
  virtual void close(int handle) = 0;

  /// Name of the socket's congestion control; empty if that has no meaning.
  virtual std::string congestion(const Socket&) { return {}; }
  /// False: unknown here, or not permitted.
  virtual bool set_congestion(Socket&, const std::string& /*name*/) { return false; }
  /// For how long the connection outlives a cut of the network; bytes lost meanwhile are sent again soon after it.
  /// Until this is set, a connection on which nothing is under way ends after about four seconds. `reader`: the peer
  /// always reads, so that bytes which it does not acknowledge for so long end the connection, too. Elsewhere the time
  /// in which a slow peer does not read would count.
  enum class Reader { always, may_be_slow };
  virtual void set_patience(Socket&, std::int64_t /*ns*/, Reader) {}
  /// Nothing: not known here.
  virtual std::optional<Outgoing> outgoing(const Socket&) { return std::nullopt; }
};

/// The operating system's own.
System& real_system();

/// Nanoseconds since 1970, for display only: this clock may go back, and no wait depends on it.
std::int64_t wall_clock_ns();

/// Makes progress when asked and reports what it waits for; the service thread drives a list of tasks.
class Task {
 public:
  virtual ~Task() = default;
  /// Does what can be done now. False: finished, may be dropped.
  virtual bool advance() = 0;
  /// Adds the handles to wait for; returns the latest time (now_ns) for the next advance.
  virtual std::int64_t poll_set(std::vector<PollItem>& items) = 0;
};

}  // namespace tutti
