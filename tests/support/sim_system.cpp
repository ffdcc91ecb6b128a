#include "support/sim_system.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <limits>

namespace tutti {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

Error failed(const char* what, int sys_errno) {
  return Error{.code = Code::system, .what = what, .sys_errno = sys_errno};
}

}  // namespace

std::int64_t SimSystem::pick(std::int64_t from, std::int64_t to) {
  assert(from <= to);
  return from + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(to - from + 1));
}

bool SimSystem::chance(double probability) {
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

std::int64_t SimSystem::now_ns() {
  return now_ns_ += pick(1, 50);
}

void SimSystem::advance_to(std::int64_t now) {
  now_ns_ = std::max(now_ns_, now);
  settle();
}

void SimSystem::wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) {
  const bool sleeps = word.load() == expected && timeout_ns != 0;
  const std::int64_t longest = timeout_ns < 0 ? 1'000'000 : timeout_ns;
  advance_to(now_ns_ + (sleeps ? pick(1, longest) : 100));
}

void SimSystem::yield() {
  advance_to(now_ns_ + pick(100, 2'000));
}

void SimSystem::poll(std::span<PollItem> items, std::int64_t timeout_ns) {
  const std::int64_t until = timeout_ns < 0 ? never : now_ns_ + timeout_ns;
  advance_to(now_ns_ + pick(100, 2'000));
  while (true) {
    bool any = false;
    for (PollItem& item : items) any |= item.ready = ready(item);
    if (any || now_ns_ >= until) return;
    // Without any event nothing will ever happen; the caller finds nothing ready and has a limit of his own.
    const std::int64_t next = std::min(until, next_event_ns());
    if (next == never) return;
    advance_to(next);
  }
}

/// Lets connects arrive.
void SimSystem::settle() {
  if (calling_.empty()) return;
  const auto arrived = std::stable_partition(calling_.begin(), calling_.end(), [this](int number) {
    const auto one = connections_.find(number);
    return one != connections_.end() && one->second.open_ns > now_ns_;
  });
  const std::vector<int> numbers(arrived, calling_.end());
  calling_.erase(arrived, calling_.end());
  for (const int number : numbers) {
    const auto one = connections_.find(number);
    if (one == connections_.end()) continue;  // its caller has hung up
    Connection& connection = one->second;
    const auto listener =
        std::ranges::find_if(listeners_, [&](const auto& entry) { return entry.second.at == connection.ends[1]; });
    if (listener == listeners_.end() && chance(options_.to_itself)) {
      connection.to_itself = true;
      connection.ends[0] = connection.ends[1];
      connection.closed_ends = 1;
      connection.state = Connection::State::open;
    } else if (listener == listeners_.end() || chance(options_.refuse)) {
      connection.state = Connection::State::refused;
    } else if (chance(options_.silence)) {
      connection.state = Connection::State::silent;
    } else {
      connection.state = Connection::State::open;
      listener->second.waiting.push_back(number);
    }
  }
}

/// errno that this end meets, 0 when all is well.
int SimSystem::failure(const Connection& connection, int side) const {
  if (connection.state == Connection::State::refused) return ECONNREFUSED;
  const std::int64_t reset = connection.to[side].reset_ns;
  return reset >= 0 && reset <= now_ns_ ? ECONNRESET : 0;
}

bool SimSystem::ready(const PollItem& item) {
  if (const auto listener = listeners_.find(item.handle); listener != listeners_.end())
    return item.want_read && !listener->second.waiting.empty();
  const auto end = ends_.find(item.handle);
  if (end == ends_.end()) return false;
  const Connection& connection = connections_.at(end->second.connection);
  const int side = end->second.side;
  if (failure(connection, side) != 0) return true;
  if (connection.state == Connection::State::calling) return false;
  const Direction& in = connection.to[side];
  const bool readable = (!in.pieces.empty() && in.pieces.front().arrives_ns <= now_ns_) ||
                        (in.pieces.empty() && in.end_ns >= 0 && in.end_ns <= now_ns_);
  const bool writable = connection.to[1 - side].bytes < options_.buffer_bytes;
  return (item.want_read && readable) || (item.want_write && writable);
}

std::int64_t SimSystem::next_event_ns() const {
  std::int64_t next = never;
  const auto at = [&](std::int64_t then) {
    if (then > now_ns_) next = std::min(next, then);
  };
  for (const auto& [number, connection] : connections_) {
    if (connection.state == Connection::State::calling) at(connection.open_ns);
    for (const Direction& direction : connection.to) {
      if (!direction.pieces.empty()) at(direction.pieces.front().arrives_ns);
      at(direction.end_ns);
      at(direction.reset_ns);
    }
  }
  return next;
}

std::int64_t SimSystem::arrival(Direction& direction) {
  direction.last_ns = std::max(direction.last_ns + (options_.step_ns == 0), delayed());
  return direction.last_ns;
}

std::int64_t SimSystem::delayed() {
  const std::int64_t then = now_ns_ + pick(1, options_.delay_ns_max);
  const std::int64_t step = std::max<std::int64_t>(options_.step_ns, 1);
  return (then + step - 1) / step * step;
}

std::size_t SimSystem::cut_short(std::size_t bytes) {
  return bytes > 1 && chance(0.5) ? static_cast<std::size_t>(pick(1, static_cast<std::int64_t>(bytes))) : bytes;
}

void SimSystem::garble(Bytes& bytes) {
  const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(pick(0, static_cast<std::int64_t>(bytes.size()) - 1));
  const auto kind = pick(0, 3);
  if (kind == 0) bytes.erase(at);
  if (kind == 1) bytes.insert(at, *at);
  if (kind == 2) *at ^= static_cast<std::byte>(1 << pick(0, 7));
  if (kind == 3) *at = static_cast<std::byte>(pick(0, 255));
}

Result<Socket> SimSystem::listen(const SocketAddress& at) {
  SocketAddress real = at;
  if (real.port == 0) real.port = next_port_++;
  if (std::ranges::any_of(listeners_, [&](const auto& entry) { return entry.second.at == real; }))
    return failed("listen", EADDRINUSE);
  listeners_[next_handle_] = {.at = real, .waiting = {}};
  owners_[next_handle_] = owner_;
  return Socket(*this, next_handle_++);
}

Result<SocketAddress> SimSystem::address(const Socket& socket) {
  if (const auto listener = listeners_.find(socket.handle()); listener != listeners_.end()) return listener->second.at;
  const End& end = ends_.at(socket.handle());
  return connections_.at(end.connection).ends[end.side];
}

Result<SocketAddress> SimSystem::peer_address(const Socket& socket) {
  const End& end = ends_.at(socket.handle());
  const Connection& connection = connections_.at(end.connection);
  if (connection.state == Connection::State::calling) return failed("peer", ENOTCONN);
  return connection.ends[1 - end.side];
}

Result<Socket> SimSystem::accept(Socket& listener) {
  auto& waiting = listeners_.at(listener.handle()).waiting;
  if (waiting.empty()) return Socket();
  if (accepted_sockets() >= options_.accepted_max) return failed("accept", EMFILE);
  ends_[next_handle_] = {.connection = waiting.front(), .side = 1};
  owners_[next_handle_] = owner_;
  waiting.pop_front();
  return Socket(*this, next_handle_++);
}

std::size_t SimSystem::accepted_sockets() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(ends_, [](const auto& entry) { return entry.second.side == 1; }));
}

Result<Socket> SimSystem::connect(const SocketAddress& to) {
  Connection connection;
  connection.ends[0] = {.host = "10.0.0.1", .port = next_port_++};
  connection.ends[1] = to;
  connection.open_ns = delayed();
  connections_[next_connection_] = std::move(connection);
  calling_.push_back(next_connection_);
  ends_[next_handle_] = {.connection = next_connection_++, .side = 0};
  owners_[next_handle_] = owner_;
  return Socket(*this, next_handle_++);
}

Result<Moved> SimSystem::send(Socket& socket, std::span<const std::byte> bytes) {
  const End end = ends_.at(socket.handle());
  Connection& connection = connections_.at(end.connection);
  if (const int problem = failure(connection, end.side)) return failed("send", problem);
  if (connection.state == Connection::State::calling) return Moved{};
  const std::int64_t gone_ns = connection.to[end.side].end_ns;
  if (gone_ns >= 0 && gone_ns <= now_ns_) return Moved{.closed = true};
  if (chance(options_.reset)) {
    reset(socket.handle());
    return failed("send", ECONNRESET);
  }
  Direction& out = connection.to[connection.to_itself ? end.side : 1 - end.side];
  const std::size_t space = options_.buffer_bytes - std::min(options_.buffer_bytes, out.bytes);
  const std::size_t moved = cut_short(std::min(bytes.size(), space));
  if (moved == 0) return Moved{};
  Bytes piece(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(moved));
  if (chance(options_.garble)) garble(piece);
  if (piece.empty()) return Moved{.bytes = moved};
  out.bytes += piece.size();
  if (connection.state == Connection::State::silent)
    out.pieces.push_back({.arrives_ns = never, .bytes = std::move(piece)});
  else
    put_on_the_wire(out, std::move(piece));
  return Moved{.bytes = moved};
}

void SimSystem::put_on_the_wire(Direction& out, Bytes piece) {
  constexpr std::size_t packet_bytes = 8192;
  const std::size_t most = options_.byte_ns == 0 ? piece.size() : packet_bytes;
  for (std::size_t at = 0; at < piece.size(); at += most) {
    const std::size_t bytes = std::min(most, piece.size() - at);
    const auto from = piece.begin() + static_cast<std::ptrdiff_t>(at);
    out.last_ns = arrival(out) + static_cast<std::int64_t>(bytes) * options_.byte_ns;
    out.pieces.push_back({.arrives_ns = out.last_ns, .bytes = Bytes(from, from + static_cast<std::ptrdiff_t>(bytes))});
  }
}

Result<Moved> SimSystem::send_pieces(Socket& socket, std::span<const std::span<const std::byte>> pieces) {
  Bytes all;
  for (const auto piece : pieces.first(std::min(pieces.size(), send_pieces_max)))
    all.insert(all.end(), piece.begin(), piece.end());
  return send(socket, all);
}

Result<Moved> SimSystem::receive(Socket& socket, std::span<std::byte> bytes) {
  const End end = ends_.at(socket.handle());
  Connection& connection = connections_.at(end.connection);
  Direction& in = connection.to[end.side];
  if (!in.pieces.empty() && in.pieces.front().arrives_ns <= now_ns_) {
    Bytes& piece = in.pieces.front().bytes;
    const std::size_t moved = cut_short(std::min(bytes.size(), piece.size()));
    std::copy_n(piece.begin(), moved, bytes.begin());
    piece.erase(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(moved));
    in.bytes -= moved;
    if (piece.empty()) in.pieces.pop_front();
    return Moved{.bytes = moved};
  }
  if (const int problem = failure(connection, end.side)) return failed("receive", problem);
  return Moved{.closed = in.pieces.empty() && in.end_ns >= 0 && in.end_ns <= now_ns_};
}

void SimSystem::reset(int handle) {
  const auto end = ends_.find(handle);
  if (end == ends_.end()) return;
  for (Direction& direction : connections_.at(end->second.connection).to) {
    direction.pieces.clear();
    direction.bytes = 0;
    direction.reset_ns = now_ns_;
  }
}

void SimSystem::kill(int owner) {
  for (const auto& [handle, of] : owners_) {
    if (of != owner) continue;
    reset(handle);
    if (const auto listener = listeners_.find(handle); listener != listeners_.end())
      listener->second.at.host = "nowhere";
  }
}

void SimSystem::end(int owner) {
  for (const auto& [handle, of] : owners_) {
    if (of != owner) continue;
    if (const auto end = ends_.find(handle); end != ends_.end()) {
      if (connections_.at(end->second.connection).state == Connection::State::open)
        close_end(end->second);
      else
        reset(handle);
    }
    if (const auto listener = listeners_.find(handle); listener != listeners_.end())
      listener->second.at.host = "nowhere";
  }
}

void SimSystem::close(int handle) {
  owners_.erase(handle);
  if (const auto listener = listeners_.find(handle); listener != listeners_.end()) {
    for (const int number : listener->second.waiting) {
      Connection& connection = connections_.at(number);
      connection.to[0].reset_ns = arrival(connection.to[0]);
      if (++connection.closed_ends == 2) connections_.erase(number);
    }
    listeners_.erase(listener);
    return;
  }
  const auto at = ends_.find(handle);
  assert(at != ends_.end());
  const End end = at->second;
  ends_.erase(at);
  Connection& connection = connections_.at(end.connection);
  const bool alone = connection.state != Connection::State::open || ++connection.closed_ends == 2;
  if (alone) {
    connections_.erase(end.connection);
    return;
  }
  close_end(end);
}

void SimSystem::close_end(const End& end) {
  Connection& connection = connections_.at(end.connection);
  Direction& out = connection.to[1 - end.side];
  if (out.end_ns >= 0 || out.reset_ns >= 0) return;
  if (connection.to[end.side].pieces.empty()) {
    out.end_ns = arrival(out);
    return;
  }
  // As TCP does it: closing with something unread is a reset, which may overtake what is still under way.
  if (chance(0.5)) out.pieces.clear();
  out.bytes = out.pieces.empty() ? 0 : out.bytes;
  out.reset_ns = arrival(out);
}

}  // namespace tutti
