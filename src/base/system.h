// Clock, waiting and sockets, as something that is handed in: real here, simulated in tests with a seed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tutti {

class System;

/// A socket with one owner; the handle is meaningful to its System alone.
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
  bool ready = false;  ///< out: readable, writable as wanted, or failed
};

/// Bytes moved by one call; 0 and not closed: it would have blocked (or is still connecting).
struct Moved {
  std::size_t bytes = 0;
  bool closed = false;
};

/// All calls are safe from any thread; none blocks but `poll` and `wait`.
class System {
 public:
  virtual ~System() = default;

  /// Monotonic nanoseconds.
  virtual std::int64_t now_ns() = 0;

  /// Sleeps until `word` no longer holds `expected` and somebody called wake on it, or `timeout_ns` passed.
  /// Works across processes that share the word. May return early; a negative timeout is none.
  virtual void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) = 0;
  virtual void wake(std::atomic<std::uint32_t>& word) = 0;

  /// Gives the core to another thread (simulated: lets others go first).
  virtual void yield() = 0;

  /// Waits until an item is ready or `timeout_ns` passed; -1 waits for ever.
  virtual void poll(std::span<PollItem> items, std::int64_t timeout_ns) = 0;

  virtual Result<Socket> listen(const SocketAddress& at) = 0;            ///< port 0: any free one
  virtual Result<SocketAddress> address(const Socket& socket) = 0;       ///< its own end
  virtual Result<SocketAddress> peer_address(const Socket& socket) = 0;  ///< the other end, once connected
  virtual Result<Socket> accept(Socket& listener) = 0;                   ///< an empty Socket when nobody waits
  /// Begins; the error of a connect that fails comes from here or from the first send or receive.
  virtual Result<Socket> connect(const SocketAddress& to) = 0;
  virtual Result<Moved> send(Socket& socket, std::span<const std::byte> bytes) = 0;
  /// The same of several pieces, one behind the other, at least one; only the first send_pieces_max are looked at.
  virtual Result<Moved> send_pieces(Socket& socket, std::span<const std::span<const std::byte>> pieces) {
    return send(socket, pieces.front());
  }
  static constexpr std::size_t send_pieces_max = 16;
  virtual Result<Moved> receive(Socket& socket, std::span<std::byte> bytes) = 0;
  virtual void close(int handle) = 0;

  /// Name of the congestion control of a socket; empty where that means nothing.
  virtual std::string congestion(const Socket&) { return {}; }
  /// False: unknown here, or not allowed.
  virtual bool set_congestion(Socket&, const std::string& /*name*/) { return false; }
  /// How long sent bytes may wait for an answer before the connection fails. The time that the peer does not read
  /// counts too: only for connections whose peer always reads.
  virtual void set_user_timeout(Socket&, std::int64_t /*ns*/) {}
};

/// The operating system's own.
System& real_system();

/// Nanoseconds since 1970, for people alone: it may go back, and nothing waits by it.
std::int64_t wall_clock_ns();

/// Something that makes progress when asked and says what it waits for; the service thread drives a list of these.
class Task {
 public:
  virtual ~Task() = default;
  /// Does what can be done now. False: finished, may be dropped.
  virtual bool advance() = 0;
  /// Adds the handles to wait for; returns the latest time (now_ns) at which advance wants to be called again.
  virtual std::int64_t poll_set(std::vector<PollItem>& items) = 0;
};

}  // namespace tutti
