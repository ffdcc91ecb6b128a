#include "bootstrap/bootstrap_entrance.h"

#include <algorithm>
#include <utility>

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t accept_pause_ns = 20 * ms;     // when there are no descriptors
constexpr std::int64_t accept_limit_ns = 2'000 * ms;  // for them to come back
constexpr std::size_t mail_max = 64;

}  // namespace

/// Guarded by the entrance's mutex, but for the tag.
class Entrance::Place {
 public:
  explicit Place(const handshake::Tag& tag_in) : tag(tag_in) {}
  const handshake::Tag tag;
  bool accepting = true;
  std::deque<Pending> mail;
};

Result<std::shared_ptr<Entrance>> Entrance::open(System& system, const SocketAddress& at) {
  auto listener = system.listen(at);
  if (!listener) return std::move(listener).error();
  auto address = system.address(*listener);
  if (!address) return std::move(address).error();
  return std::make_shared<Entrance>(*std::move(listener), *std::move(address));
}

Result<Entrance::Seat> Entrance::enter(const std::shared_ptr<Entrance>& entrance, const Secret& secret) {
  const auto tag = handshake::tag_of(secret);
  if (!tag) return tag.error();
  Seat seat{.entrance = entrance, .place = std::make_shared<Place>(*tag)};
  const std::lock_guard lock(entrance->mutex_);
  std::erase_if(entrance->places_, [](const auto& known) { return known.expired(); });
  entrance->places_.push_back(seat.place);
  return seat;
}

Result<Socket> Entrance::accept(System& system) {
  auto socket = system.accept(listener_);
  if (!socket) {
    accept_later(system, socket.error());
  } else {
    failing_since_ns_ = 0;
    stuck_.reset();
  }
  return socket;
}

/// Those who wait outside cannot be told; each connection that goes lets one of them in.
void Entrance::accept_later(System& system, const Error& error) {
  const std::int64_t now = system.now_ns();
  accept_again_ns_ = now + accept_pause_ns;
  if (failing_since_ns_ == 0) failing_since_ns_ = now;
  if (now - failing_since_ns_ >= accept_limit_ns) stuck_ = error;
}

bool Entrance::is_doorkeeper(const Place& place, bool accepting) {
  const std::lock_guard lock(mutex_);
  for (const auto& known : places_) {
    const auto one = known.lock();
    if (one.get() == &place) one->accepting = accepting;
    if (one && one->accepting) return one.get() == &place;
  }
  return false;
}

bool Entrance::alone() {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(places_, [](const auto& known) { return !known.expired(); }) <= 1;
}

bool Entrance::hand_over(const Place& from, Pending& one) {
  const auto tag = handshake::tag_in(one.hello);
  const std::lock_guard lock(mutex_);
  for (const auto& known : places_) {
    const auto to = known.lock();
    if (!to || to->tag != tag) continue;
    if (to.get() == &from) return false;
    if (to->mail.size() < mail_max) to->mail.push_back(std::move(one));
    return true;  // without room for it the caller closes it, and its rank calls again
  }
  return false;
}

bool Entrance::has_mail(const Place& place) {
  const std::lock_guard lock(mutex_);
  return !place.mail.empty();
}

std::deque<Pending> Entrance::take_mail(Place& place) {
  const std::lock_guard lock(mutex_);
  return std::exchange(place.mail, {});
}

}  // namespace tutti::bootstrap
