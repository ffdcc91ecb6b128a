#include "net/connection_server.h"

#include <algorithm>

#include "net/reach_proof.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t proof_limit_ns = 2'000 * ms;
constexpr std::int64_t accept_pause_ns = 20 * ms;
constexpr std::int64_t stuck_ns = 1'000 * ms;
constexpr std::size_t pending_max = 64;
constexpr int accepts_per_turn = 64;

}  // namespace

Result<std::shared_ptr<ConnectionServer>> ConnectionServer::open(System& system,
                                                                 const std::vector<std::string>& hosts) {
  std::shared_ptr<ConnectionServer> server(new ConnectionServer(system));
  Error last{.code = Code::internal, .what = "no address to listen at"};
  for (const std::string& host : hosts) {
    auto listener = system.listen({.host = host, .port = 0});
    if (!listener) {
      last = std::move(listener).error();
      continue;
    }
    auto at = system.address(*listener);
    if (!at) {
      last = std::move(at).error();
      continue;
    }
    server->listeners_.push_back({*std::move(listener), AcceptPause(accept_pause_ns, stuck_ns)});
    server->addresses_.push_back(*std::move(at));
  }
  if (server->listeners_.empty()) return std::move(last).during("open the listener for ranks of other hosts");
  return server;
}

void ConnectionServer::expect(const std::shared_ptr<Arrivals>& arrivals) {
  const std::lock_guard lock(mutex_);
  std::erase_if(expected_, [](const auto& known) { return known.expired(); });
  expected_.push_back(arrivals);
}

template <class Wanted>
std::shared_ptr<Arrivals> ConnectionServer::find_arrivals(Wanted wanted) {
  const std::lock_guard lock(mutex_);
  for (const auto& known : expected_)
    if (auto arrivals = known.lock(); arrivals && wanted(*arrivals)) return arrivals;
  return nullptr;
}

bool ConnectionServer::advance() {
  const std::int64_t now = system_.now_ns();
  for (Listener& listener : listeners_) accept_from(listener, now);
  std::erase_if(pending_, [&](Pending& one) {
    Step went = Step::more;
    while (went == Step::more) went = step(one);
    return went == Step::over || now >= one.deadline_ns;
  });
  return true;
}

void ConnectionServer::accept_from(Listener& listener, std::int64_t now_ns) {
  if (now_ns < listener.pause.until_ns()) return;
  for (int i = 0; i < accepts_per_turn; ++i) {
    auto socket = system_.accept(listener.socket);
    if (!socket) return cannot_accept(listener, std::move(socket).error());
    if (listener.pause.worked()) report_stuck(std::nullopt);
    if (!*socket) return;
    if (pending_.size() == pending_max) pending_.pop_front();
    pending_.push_back({.wire = Wire(system_, *std::move(socket)), .deadline_ns = now_ns + proof_limit_ns});
  }
}

void ConnectionServer::cannot_accept(Listener& listener, Error error) {
  const bool waited = listener.pause.waits();
  switch (listener.pause.failed(system_, listener.socket.handle())) {
    case AcceptPause::Waiter::none:
      if (waited) report_stuck(std::nullopt);
      return;
    case AcceptPause::Waiter::waits: return;
    case AcceptPause::Waiter::too_long: report_stuck(std::move(error).during("accept connections of other ranks"));
  }
}

void ConnectionServer::report_stuck(const std::optional<Error>& why) {
  std::vector<std::shared_ptr<Arrivals>> concerned;
  {
    const std::lock_guard lock(mutex_);
    stuck_ = why;
    for (const auto& known : expected_)
      if (auto arrivals = known.lock()) concerned.push_back(std::move(arrivals));
  }
  for (const auto& arrivals : concerned) arrivals->hold_up(why);
}

std::optional<Error> ConnectionServer::stuck() {
  const std::lock_guard lock(mutex_);
  return stuck_;
}

/// Processes one frame. A connection that sends anything wrong is dropped without an answer.
ConnectionServer::Step ConnectionServer::step(Pending& one) {
  auto flushed = one.wire.flush();
  if (one.proven) {
    if (!flushed) return Step::over;
    if (!*flushed) return Step::waits;
    if (!one.probe.empty()) return Step::over;
    one.arrivals->put(one.words, std::move(one.wire).take_socket());
    return Step::over;
  }
  const std::size_t wanted = !one.probe.empty()            ? ReachProbe::bytes - one.probe.size()
                             : !one.arrivals               ? Greeting::bytes
                             : !one.handshake.challenged() ? handshake::hello_bytes
                                                           : handshake::proof_bytes;
  auto bytes = one.wire.take(wanted);
  if (!bytes) return Step::over;
  if (!*bytes) return Step::waits;
  if (!one.probe.empty()) return probed(one, **bytes);
  if (!one.arrivals) return greeted(one, **bytes);
  if (!one.handshake.challenged()) {
    auto challenge = one.handshake.challenge(one.secret, **bytes);
    if (!challenge || one.handshake.rank() != one.words.from) return Step::over;
    one.wire.queue(*std::move(challenge));
    return Step::more;
  }
  if (!one.handshake.verify(one.secret, **bytes)) return Step::over;
  one.wire.queue(serialized(welcome_value));
  one.proven = true;
  return Step::more;
}

ConnectionServer::Step ConnectionServer::greeted(Pending& one, const Bytes& bytes) {
  if (const auto probe = ReachProbe::read(bytes)) {
    const auto meant = [&](const Arrivals& known) { return known.is_for(probe->communicator, probe->rank); };
    one.arrivals = find_arrivals(meant);
    one.probe = bytes;
    return one.arrivals ? Step::more : Step::over;
  }
  auto words = read_greeting(bytes);
  if (!words) return Step::over;
  one.arrivals = find_arrivals([&](const Arrivals& known) { return known.may_come(*words); });
  if (!one.arrivals) return Step::over;
  auto secret = one.arrivals->key().for_greeting(bytes);
  if (!secret) return Step::over;
  one.words = *words;
  one.secret = *secret;
  return Step::more;
}

ConnectionServer::Step ConnectionServer::probed(Pending& one, const Bytes& bytes) {
  one.probe.insert(one.probe.end(), bytes.begin(), bytes.end());
  auto answer = answer_probe(one.arrivals->key(), one.probe);
  if (!answer) return Step::over;
  one.wire.queue(*std::move(answer));
  one.proven = true;
  return Step::more;
}

std::int64_t ConnectionServer::poll_set(std::vector<PollItem>& items) {
  const std::int64_t now = system_.now_ns();
  std::int64_t next = now + 1'000 * ms;
  for (const Listener& listener : listeners_) {
    if (now < listener.pause.until_ns())
      next = std::min(next, listener.pause.until_ns());
    else
      items.push_back({.handle = listener.socket.handle(), .want_read = true});
  }
  for (const Pending& one : pending_) {
    items.push_back(one.wire.interest());
    next = std::min(next, one.deadline_ns);
  }
  return next;
}

}  // namespace tutti
