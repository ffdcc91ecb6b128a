#include "init/group_watch.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "comm/peer_failure.h"

namespace tutti {
namespace {

constexpr std::int64_t look_every_ns = 50'000'000;
constexpr std::int64_t look_ns_max = 70'000'000;  // most time that one look counts for, however late it is
constexpr std::int64_t patience_ns = 200'000'000;

/// Indices of the members, first those that were lost first: later ones may have left because of them.
std::vector<std::size_t> first_lost_first(const Communicator& parent, const std::vector<Rank>& members) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const std::int64_t since_ns = parent.failure().gone().since_ns(members[i]);
    return since_ns != 0 ? since_ns : std::numeric_limits<std::int64_t>::max();
  });
  return order;
}

}  // namespace

GroupWatch::GroupWatch(Communicator& parent, std::vector<Rank> members)
    : parent_(parent),
      system_(parent.process().system),
      members_(std::move(members)),
      silence_ns_(parent.process().config.integer("TUTTI_SILENCE_MS") * 1'000'000),
      lives_(members_.size()),
      looked_ns_(system_.now_ns()) {}

/// What another rank did is none of the members' business; what the parent's calls on a member met is, as a mismatch or
/// a limit that has passed.
bool GroupWatch::concerns(Code code, int culprit) const {
  return code != Code::remote || culprit < 0 || std::ranges::find(members_, culprit) != members_.end();
}

std::optional<Error> GroupWatch::failed_here() const {
  if (!parent_.failed()) return std::nullopt;
  Error failure = parent_.failure().error();
  if (!concerns(failure.code, failure.peer)) return std::nullopt;
  return failure;
}

/// A member that has left the parent may have met the others before.
std::optional<Error> GroupWatch::failed_there(Rank rank) const {
  const AreaHeader& header = parent_.members().peers[static_cast<std::size_t>(rank)].area.header();
  if (header.state_now() == RankState::failed &&
      !concerns(received_code(header.failure.load(std::memory_order_relaxed)),
                header.culprit.load(std::memory_order_relaxed)))
    return std::nullopt;
  return failure_of(parent_, rank);
}

std::optional<Error> GroupWatch::ended(Rank rank) const {
  const Peer& peer = parent_.members().peers[static_cast<std::size_t>(rank)];
  if (!peer.process || has_left(parent_, rank) || !peer.process->ended()) return std::nullopt;
  return lost(parent_, rank);
}

/// The signs of life of ranks end when the parent has failed.
std::optional<Error> GroupWatch::stopped(Rank rank, SignsOfLife& life, std::int64_t passed_ns) const {
  const Peer& peer = parent_.members().peers[static_cast<std::size_t>(rank)];
  if (!peer.process || silence_ns_ <= 0 || has_left(parent_, rank)) return std::nullopt;
  const auto loss = life.look(*peer.process, peer.area.header(), system_.now_ns(), passed_ns, silence_ns_,
                              /*excused=*/parent_.failed());
  if (!loss) return std::nullopt;
  return loss->error(parent_.members().describe(rank), rank);
}

/// Processes first: an ended process is the cause, and ranks that fail because of it are the consequence.
std::optional<Error> GroupWatch::find(std::int64_t passed_ns) {
  for (const Rank rank : members_) {
    if (rank == parent_.rank()) continue;
    if (auto end = ended(rank)) {
      if (auto reason = failed_there(rank)) return reason;  // it left the reason before it ended
      return end;
    }
  }
  if (auto failure = failed_here()) return failure;
  for (const std::size_t i : first_lost_first(parent_, members_)) {
    if (members_[i] == parent_.rank()) continue;
    if (auto failure = failed_there(members_[i])) return failure;
    if (auto failure = stopped(members_[i], lives_[i], passed_ns)) return failure;
  }
  return std::nullopt;
}

bool GroupWatch::advance() {
  const std::int64_t now = system_.now_ns();
  // Two looks at one instant do not let silence begin anew.
  auto found = find(std::clamp<std::int64_t>(now - std::exchange(looked_ns_, now), 1, look_ns_max));
  if (!found) return true;
  const std::lock_guard lock(mutex_);
  found_ = std::move(found);
  found_ns_ = now;
  return false;
}

std::int64_t GroupWatch::poll_set(std::vector<PollItem>& items) {
  for (const Rank rank : members_) {
    const Peer& peer = parent_.members().peers[static_cast<std::size_t>(rank)];
    if (peer.process && !has_left(parent_, rank)) peer.process->poll_set(items);
  }
  return system_.now_ns() + look_every_ns;
}

Result<void> GroupWatch::look() const {
  if (auto failure = failed_here()) return *std::move(failure);
  const std::lock_guard lock(mutex_);
  if (found_) return *found_;
  return {};
}

Result<void> GroupWatch::check_patiently() const {
  if (parent_.failed() && parent_.members().area->area.header().state.load() == RankState::aborted)
    return parent_.failure().error();
  const std::lock_guard lock(mutex_);
  if (found_ && system_.now_ns() - found_ns_ >= patience_ns) return *found_;
  return {};
}

}  // namespace tutti
