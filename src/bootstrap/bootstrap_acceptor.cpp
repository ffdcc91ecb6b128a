#include "bootstrap/bootstrap_acceptor.h"

#include <algorithm>
#include <utility>

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t proof_limit_ns = 2'000 * ms;  // from accept to proof
constexpr std::int64_t answer_time_ns = 100 * ms;    // for connections that have greeted, however many others wait
constexpr std::size_t pending_max = 64;
constexpr int accepts_per_turn = 64;  // bounded, so that a flood of connections does not delay the admitted ranks

}  // namespace

std::vector<Acceptor::AuthenticatedConnection> Acceptor::advance(bool accepting) {
  std::vector<AuthenticatedConnection> connections;
  if (registration_.shared_listener) accept_some(connections, accepting);
  if (pending_.empty()) return connections;
  // One poll for all, instead of one for each.
  std::vector<PollItem> items;
  for (const Pending& one : pending_) items.push_back(one.wire.interest());
  system_.poll(items, 0);
  const std::int64_t now = system_.now_ns();
  auto item = items.begin();
  std::erase_if(pending_, [&](Pending& one) {
    const bool ready = (item++)->ready;
    if (!ready && now - one.since_ns < proof_limit_ns) return false;
    const Fate fate = ready ? greet(one) : Fate::waits;
    if (fate == Fate::waits && now - one.since_ns < proof_limit_ns) return false;
    settle(one, fate, connections);
    return true;
  });
  return connections;
}

/// A connection with a valid greeting is not a refusal, even if it ends without a proof: a rank that gives up an
/// address or is slow calls again.
void Acceptor::settle(Pending& one, Fate fate, std::vector<AuthenticatedConnection>& connections) {
  if (fate == Fate::proved)
    connections.push_back({std::move(one.wire), std::move(one.host), one.handshake.rank(), one.handshake.version()});
  else if (fate != Fate::elsewhere && (fate == Fate::refused || !one.handshake.challenged()))
    count(one);
}

void Acceptor::count(const Pending& one) {
  if (one.hello.empty() && one.wire.begun().empty())
    refusals_.add_silent();
  else
    refusals_.add(one.host);
}

void Acceptor::accept_some(std::vector<AuthenticatedConnection>& connections, bool accepting) {
  SharedListener& shared_listener = *registration_.shared_listener;
  const bool may_accept = shared_listener.may_accept(*registration_.entry, accepting);
  if (!accepting) return;
  for (Pending& one : shared_listener.take_handed_over(*registration_.entry))
    if (pending_.size() < pending_max || make_room()) look_at(std::move(one), connections);
  if (!may_accept || system_.now_ns() < shared_listener.accept_again_ns()) return;
  for (int i = 0; i < accepts_per_turn; ++i) {
    if (pending_.size() == pending_max && !make_room()) return;
    auto socket = shared_listener.accept(system_);
    if (!socket || !*socket) return;
    std::string host = host_of(*socket);
    look_at({.wire = Wire(system_, *std::move(socket)), .since_ns = system_.now_ns(), .host = std::move(host)},
            connections);
  }
}

/// Most unwanted connections show with their first bytes that they are unwanted, and a fast rank needs no poll.
void Acceptor::look_at(Pending one, std::vector<AuthenticatedConnection>& connections) {
  const Fate fate = greet(one);
  if (fate == Fate::waits)
    pending_.push_back(std::move(one));
  else
    settle(one, fate, connections);
}

bool Acceptor::make_room() {
  auto one = std::ranges::find_if(pending_, [](const Pending& other) { return !other.handshake.challenged(); });
  if (one == pending_.end()) {
    one = pending_.begin();
    if (system_.now_ns() - one->since_ns < answer_time_ns) return false;
  }
  if (!one->handshake.challenged()) count(*one);  // ranks that have greeted call again
  pending_.erase(one);
  return true;
}

bool Acceptor::full_of_greeted() const {
  return pending_.size() == pending_max &&
         std::ranges::all_of(pending_, [](const Pending& one) { return one.handshake.challenged(); });
}

std::string Acceptor::host_of(const Socket& socket) {
  const auto peer = system_.peer_address(socket);
  return peer ? peer->host : "an unknown address";
}

Acceptor::Fate Acceptor::greet(Pending& one) {
  // Bytes sent before a connection closed can still be read, so a failed flush decides nothing.
  (void)one.wire.flush();
  while (true) {
    const bool challenged = one.handshake.challenged();
    if (!challenged && !one.hello.empty()) {
      if (const Fate fate = challenge(one); fate != Fate::waits) return fate;
      continue;
    }
    auto bytes = one.wire.take(challenged ? handshake::proof_bytes : handshake::hello_bytes);
    if (!bytes && challenged) claims(one, "hung up while greeting");
    if (!bytes) return challenged ? Fate::hung_up : Fate::refused;
    if (!*bytes) {
      const bool hopeless = !challenged && !handshake::may_be_hello(one.wire.begun());
      return hopeless ? Fate::refused : Fate::waits;
    }
    if (challenged) {
      const bool proved = static_cast<bool>(one.handshake.verify(secret_, **bytes));
      claims(one, proved ? "silent since it greeted" : "wrong id");
      return proved ? Fate::proved : Fate::refused;
    }
    one.hello = **std::move(bytes);
    if (registration_.shared_listener && registration_.shared_listener->hand_over(*registration_.entry, one))
      return Fate::elsewhere;
  }
}

Acceptor::Fate Acceptor::challenge(Pending& one) {
  auto challenge = one.handshake.challenge(secret_, one.hello);
  if (!challenge) return Fate::refused;
  claims(one, "silent since it greeted");
  one.wire.queue(*std::move(challenge));
  (void)one.wire.flush();
  return Fate::waits;
}

std::int64_t Acceptor::await_callers(std::vector<PollItem>& items, bool accepting) const {
  SharedListener& shared_listener = *registration_.shared_listener;
  const std::int64_t now = system_.now_ns();
  const std::int64_t never = now + 3'600'000 * ms;
  const bool may_accept = shared_listener.may_accept(*registration_.entry, accepting);
  if (!accepting) return never;
  if (shared_listener.has_handed_over(*registration_.entry)) return now;
  if (full_of_greeted()) return pending_.front().since_ns + answer_time_ns;
  if (!may_accept) return never;
  if (now < shared_listener.accept_again_ns()) return shared_listener.accept_again_ns();
  items.push_back({.handle = shared_listener.listener().handle(), .want_read = true});
  return never;
}

std::int64_t Acceptor::poll_set(std::vector<PollItem>& items, bool accepting) const {
  std::int64_t wake = system_.now_ns() + 3'600'000 * ms;
  if (registration_.shared_listener) wake = std::min(wake, await_callers(items, accepting));
  for (const Pending& one : pending_) {
    items.push_back(one.wire.interest());
    wake = std::min(wake, one.since_ns + proof_limit_ns);
  }
  return wake;
}

}  // namespace tutti::bootstrap
