#include "bootstrap/shared_listener.h"

#include <algorithm>
#include <utility>

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t accept_pause_ns = 20 * ms;     // after accept failed for lack of descriptors
constexpr std::int64_t accept_limit_ns = 2'000 * ms;  // accept may fail for this long before it is an error
constexpr std::size_t handed_over_max = 64;

}  // namespace

/// Guarded by the listener's mutex, except for the tag.
class SharedListener::Entry {
 public:
  explicit Entry(const handshake::Tag& tag_in) : tag(tag_in) {}
  const handshake::Tag tag;
  bool accepting = true;
  std::deque<Pending> handed_over;
};

SharedListener::SharedListener(Socket listener, SocketAddress at)
    : listener_(std::move(listener)), at_(std::move(at)), pause_(accept_pause_ns, accept_limit_ns) {}

Result<std::shared_ptr<SharedListener>> SharedListener::open(System& system, const SocketAddress& at) {
  auto listener = TUTTI_TRY(system.listen(at));
  auto address = TUTTI_TRY(system.address(listener));
  return std::make_shared<SharedListener>(std::move(listener), std::move(address));
}

Result<SharedListener::Registration> SharedListener::enter(const std::shared_ptr<SharedListener>& shared_listener,
                                                           const Secret& secret) {
  const auto tag = TUTTI_TRY(handshake::tag_of(secret));
  Registration registration{.shared_listener = shared_listener, .entry = std::make_shared<Entry>(tag)};
  const std::lock_guard lock(shared_listener->mutex_);
  std::erase_if(shared_listener->entries_, [](const auto& known) { return known.expired(); });
  shared_listener->entries_.push_back(registration.entry);
  return registration;
}

Result<Socket> SharedListener::accept(System& system) {
  auto socket = system.accept(listener_);
  if (!socket && (stuck_ || spare_lent_) && socket.error().lacks_descriptor() && spare_.give())
    socket = system.accept(listener_);
  if (!socket) {
    if (pause_.failed(system, listener_.handle()) == AcceptPause::Waiter::too_long) stuck_ = socket.error();
    return socket;
  }
  pause_.worked();
  stuck_.reset();
  // Not before all that waited have been accepted, who may need it.
  if (!*socket) spare_.take();
  return socket;
}

bool SharedListener::may_accept(const Entry& entry, bool accepting) {
  const std::lock_guard lock(mutex_);
  for (const auto& known : entries_) {
    const auto one = known.lock();
    if (one.get() == &entry) one->accepting = accepting;
    if (one && one->accepting) return one.get() == &entry;
  }
  return false;
}

bool SharedListener::alone() {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(entries_, [](const auto& known) { return !known.expired(); }) <= 1;
}

bool SharedListener::hand_over(const Entry& from, Pending& one) {
  const auto tag = handshake::tag_in(one.hello);
  const std::lock_guard lock(mutex_);
  for (const auto& known : entries_) {
    const auto to = known.lock();
    if (!to || to->tag != tag) continue;
    if (to.get() == &from) return false;
    if (to->handed_over.size() < handed_over_max) to->handed_over.push_back(std::move(one));
    return true;  // if there is no room for it, the caller closes it and its rank calls again
  }
  return false;
}

bool SharedListener::has_handed_over(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  return !entry.handed_over.empty();
}

std::deque<Pending> SharedListener::take_handed_over(Entry& entry) {
  const std::lock_guard lock(mutex_);
  return std::exchange(entry.handed_over, {});
}

}  // namespace tutti::bootstrap
