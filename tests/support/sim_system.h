// A System made of a seed: a virtual clock, and a network with random delays, short moves, refusals and resets.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "base/system.h"

namespace tutti {

struct SimOptions {
  std::uint64_t seed = 1;
  std::int64_t delay_ns_max = 2'000'000;  ///< one way; every piece has its own, in order per direction
  std::size_t buffer_bytes = 32 * 1024;   ///< under way per direction; more is not taken
  std::int64_t byte_ns = 0;               ///< what each byte takes on its connection, in packets; 0: nothing
  double refuse = 0;                      ///< chance of a connect to be refused though somebody listens
  double silence = 0;                     ///< chance of a connection to swallow all and bring nothing
  double to_itself = 0;                   ///< chance of a connect to nobody to meet itself, as on a loopback interface
  double reset = 0;                       ///< chance of a send to cut the connection
  std::size_t accepted_max = 1'000'000;   ///< accepted sockets open at once; more are EMFILE
  std::int64_t step_ns = 0;               ///< whatever arrives does so at a multiple of this; 0: at any time
  double garble = 0;                      ///< chance of a send to arrive with a byte changed, lost or doubled
};

/// For one thread, which drives all sides in turn: only `poll`, `wait` and `yield` let time pass (`now_ns` a few ns, so
/// that loops on the clock end). The same seed and the same calls give the same outcome. `wait` returns after some of
/// its time, whoever should wake it: the other side is driven later by the same thread.
class SimSystem final : public System {
 public:
  explicit SimSystem(const SimOptions& options) : options_(options), random_(options.seed) {}

  std::int64_t now_ns() override;
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) override;
  void wake(std::atomic<std::uint32_t>&) override {}
  void yield() override;
  void poll(std::span<PollItem> items, std::int64_t timeout_ns) override;

  Result<Socket> listen(const SocketAddress& at) override;
  Result<SocketAddress> address(const Socket& socket) override;
  Result<SocketAddress> peer_address(const Socket& socket) override;
  Result<Socket> accept(Socket& listener) override;
  Result<Socket> connect(const SocketAddress& to) override;
  Result<Moved> send(Socket& socket, std::span<const std::byte> bytes) override;
  Result<Moved> send_pieces(Socket& socket, std::span<const std::span<const std::byte>> pieces) override;
  Result<Moved> receive(Socket& socket, std::span<std::byte> bytes) override;
  void close(int handle) override;

  /// Faults from now on.
  SimOptions& options() { return options_; }
  /// Cuts the connection: both ends get ECONNRESET, what was under way is lost.
  void reset(int handle);
  /// Whose sockets are those made from now on.
  void act_as(int owner) { owner_ = owner; }
  /// The process is gone: its connections are cut, and nobody is let in any more.
  void kill(int owner);
  /// The process has ended: as its kernel does it, what it has sent arrives, then the end of each connection; where it
  /// had not read everything that is a reset. Nobody is let in any more.
  void end(int owner);
  /// What leaks shows here.
  std::size_t open_sockets() const { return listeners_.size() + ends_.size(); }
  std::size_t accepted_sockets() const;
  bool chance(double probability);
  std::int64_t pick(std::int64_t from, std::int64_t to);  ///< both included

 private:
  struct Piece {
    std::int64_t arrives_ns;
    Bytes bytes;
  };
  struct Direction {
    std::deque<Piece> pieces;
    std::size_t bytes = 0;       ///< in pieces
    std::int64_t last_ns = 0;    ///< nothing arrives before what was sent earlier
    std::int64_t end_ns = -1;    ///< when the end of the stream arrives; −1: open
    std::int64_t reset_ns = -1;  ///< when its reader learns of a reset
  };
  struct Connection {
    SocketAddress ends[2];     ///< of the caller, of the listener
    Direction to[2];           ///< what travels to that end
    std::int64_t open_ns = 0;  ///< when the connect arrives
    bool to_itself = false;
    enum class State { calling, open, refused, silent } state = State::calling;
    int closed_ends = 0;
  };
  struct Listener {
    SocketAddress at;
    std::deque<int> waiting;  ///< connections
  };
  struct End {
    int connection;
    int side;
  };

  void advance_to(std::int64_t now);
  void settle();
  bool ready(const PollItem& item);
  std::int64_t next_event_ns() const;
  std::int64_t arrival(Direction& direction);
  void put_on_the_wire(Direction& out, Bytes piece);
  std::int64_t delayed();
  void close_end(const End& end);
  int failure(const Connection& connection, int side) const;
  std::size_t cut_short(std::size_t bytes);
  void garble(Bytes& bytes);

  SimOptions options_;
  std::mt19937_64 random_;
  std::int64_t now_ns_ = 1'000'000'000;
  int next_handle_ = 1;
  int next_connection_ = 1;
  std::uint16_t next_port_ = 20'000;
  int owner_ = 0;
  std::map<int, int> owners_;  ///< by handle
  std::map<int, Listener> listeners_;
  std::map<int, End> ends_;
  std::map<int, Connection> connections_;
  std::vector<int> calling_;  ///< connections that may still be on their way
};

}  // namespace tutti
