#include "transport/unacknowledged.h"

#include <algorithm>
#include <utility>

namespace tutti {
namespace {

constexpr int again_min = 4;
constexpr std::int64_t look_ns_max = 2'000'000'000;

}  // namespace

Unacknowledged::Watched::Watched(std::shared_ptr<Unacknowledged> by, int peer, const Socket& socket)
    : by_(std::move(by)) {
  const std::lock_guard lock(by_->mutex_);
  entry_ = by_->entries_.insert(by_->entries_.end(), {.peer = peer, .socket = &socket});
}

Unacknowledged::Watched::~Watched() {
  if (!by_) return;
  const std::lock_guard lock(by_->mutex_);
  by_->entries_.erase(entry_);
}

std::optional<Unacknowledged::Stuck> Unacknowledged::look(System& system, std::int64_t limit_ns,
                                                          const std::function<bool(int)>& lives) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    const auto outgoing = system.outgoing(*entry.socket);
    if (!outgoing) continue;
    const std::int64_t now = system.now_ns();
    const std::int64_t looked_ns = std::exchange(entry.looked_ns, now);
    const std::int64_t passed_ns = looked_ns == 0 ? 0 : std::min(now - looked_ns, look_ns_max);
    const bool moves = std::exchange(entry.acknowledged, outgoing->acknowledged) != outgoing->acknowledged;
    entry.stuck_ns = moves || !outgoing->under_way ? 0 : entry.stuck_ns + passed_ns;
    if (entry.stuck_ns < limit_ns || outgoing->again < again_min || !lives(entry.peer)) continue;
    const auto here = system.address(*entry.socket), there = system.peer_address(*entry.socket);
    return Stuck{.peer = entry.peer,
                 .here = here ? here->host : "",
                 .there = there ? there->host : "",
                 .again = outgoing->again,
                 .seconds = static_cast<double>(entry.stuck_ns) * 1e-9};
  }
  return std::nullopt;
}

}  // namespace tutti
