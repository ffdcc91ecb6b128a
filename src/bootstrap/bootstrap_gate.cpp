#include "bootstrap/bootstrap_gate.h"

#include <algorithm>
#include <utility>

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t proof_limit_ns = 2'000 * ms;  // from accept to proof
constexpr std::int64_t answer_time_ns = 100 * ms;    // for those who greeted, whatever the crowd
constexpr std::size_t pending_max = 64;
constexpr int accepts_per_turn = 64;  // so that a flood does not keep those inside waiting

}  // namespace

std::vector<Gate::Guest> Gate::advance(bool accepting) {
  std::vector<Guest> guests;
  if (seat_.entrance) accept_some(guests, accepting);
  if (pending_.empty()) return guests;
  // One look at all, instead of one at each.
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
    settle(one, fate, guests);
    return true;
  });
  return guests;
}

/// A valid greeting is no refusal, though nothing came of it: ranks give an address up, or are slow, and come again.
void Gate::settle(Pending& one, Fate fate, std::vector<Guest>& guests) {
  if (fate == Fate::proved)
    guests.push_back({std::move(one.wire), std::move(one.host), one.handshake.rank(), one.handshake.version()});
  else if (fate != Fate::elsewhere && (fate == Fate::refused || !one.handshake.challenged()))
    refusals_.add(one.host);
}

void Gate::accept_some(std::vector<Guest>& guests, bool accepting) {
  Entrance& entrance = *seat_.entrance;
  const bool doorkeeper = entrance.is_doorkeeper(*seat_.place, accepting);
  if (!accepting) return;
  for (Pending& one : entrance.take_mail(*seat_.place))
    if (pending_.size() < pending_max || make_room()) look_at(std::move(one), guests);
  if (!doorkeeper || system_.now_ns() < entrance.accept_again_ns()) return;
  for (int i = 0; i < accepts_per_turn; ++i) {
    if (pending_.size() == pending_max && !make_room()) return;
    auto socket = entrance.accept(system_);
    if (!socket || !*socket) return;
    std::string host = host_of(*socket);
    look_at({.wire = Wire(system_, *std::move(socket)), .since_ns = system_.now_ns(), .host = std::move(host)}, guests);
  }
}

/// Most of those who have no business here show it with their first bytes, and a quick rank is through at once.
void Gate::look_at(Pending one, std::vector<Guest>& guests) {
  const Fate fate = greet(one);
  if (fate == Fate::waits)
    pending_.push_back(std::move(one));
  else
    settle(one, fate, guests);
}

bool Gate::make_room() {
  auto one = std::ranges::find_if(pending_, [](const Pending& other) { return !other.handshake.challenged(); });
  if (one == pending_.end()) {
    one = pending_.begin();
    if (system_.now_ns() - one->since_ns < answer_time_ns) return false;
  }
  if (!one->handshake.challenged()) refusals_.add(one->host);  // the others come again
  pending_.erase(one);
  return true;
}

bool Gate::full_of_greeted() const {
  return pending_.size() == pending_max &&
         std::ranges::all_of(pending_, [](const Pending& one) { return one.handshake.challenged(); });
}

std::string Gate::host_of(const Socket& socket) {
  const auto peer = system_.peer_address(socket);
  return peer ? peer->host : "an unknown address";
}

/// It knew how to greet and saw our challenge.
void Gate::claims(const Pending& one, std::string_view what) {
  refusals_.add_claim(one.handshake.rank(), one.host, what);
}

Gate::Fate Gate::greet(Pending& one) {
  // What a closed connection sent before is still there to be read, so a failed flush is no news yet.
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
    if (seat_.entrance && seat_.entrance->hand_over(*seat_.place, one)) return Fate::elsewhere;
  }
}

Gate::Fate Gate::challenge(Pending& one) {
  auto challenge = one.handshake.challenge(secret_, one.hello);
  if (!challenge) return Fate::refused;
  claims(one, "silent since it greeted");
  one.wire.queue(*std::move(challenge));
  (void)one.wire.flush();
  return Fate::waits;
}

std::int64_t Gate::await_callers(std::vector<PollItem>& items, bool accepting) const {
  Entrance& entrance = *seat_.entrance;
  const std::int64_t now = system_.now_ns();
  const std::int64_t never = now + 3'600'000 * ms;
  const bool doorkeeper = entrance.is_doorkeeper(*seat_.place, accepting);
  if (!accepting) return never;
  if (entrance.has_mail(*seat_.place)) return now;
  if (full_of_greeted()) return pending_.front().since_ns + answer_time_ns;
  if (!doorkeeper) return never;
  if (now < entrance.accept_again_ns()) return entrance.accept_again_ns();
  items.push_back({.handle = entrance.listener().handle(), .want_read = true});
  return never;
}

std::int64_t Gate::interests(std::vector<PollItem>& items, bool accepting) const {
  std::int64_t wake = system_.now_ns() + 3'600'000 * ms;
  if (seat_.entrance) wake = std::min(wake, await_callers(items, accepting));
  for (const Pending& one : pending_) {
    items.push_back(one.wire.interest());
    wake = std::min(wake, one.since_ns + proof_limit_ns);
  }
  return wake;
}

}  // namespace tutti::bootstrap
