#include "comm/peer_watch.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "comm/peer_failure.h"

namespace tutti {
namespace {

constexpr std::int64_t look_every_ns = 100'000'000;

bool gone(int pidfd, int pid) {
  if (pidfd < 0) return ::kill(pid, 0) != 0 && errno == ESRCH;
  pollfd item{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&item, 1, 0) == 1;
}

}  // namespace

PeerWatch::PeerWatch(const std::shared_ptr<Communicator>& communicator)
    : communicator_(communicator), system_(communicator->process().system) {
  for (Rank rank = 0; rank < communicator->ranks(); ++rank) {
    const Peer& peer = communicator->members().peers[rank];
    if (peer.same_process || peer.mirror) continue;
    auto known = std::ranges::find(processes_, peer.pid, &Watched::pid);
    if (known == processes_.end()) {
      auto pidfd = communicator->process().watch(peer.token, peer.pid);
      processes_.push_back({.pidfd = std::move(pidfd), .pid = peer.pid, .ranks = {}});
      known = processes_.end() - 1;
    }
    known->ranks.push_back(rank);
  }
}

bool PeerWatch::advance() {
  const auto communicator = communicator_.lock();
  if (!communicator || communicator->failed()) return false;
  communicator->look_at_gpu();
  // Processes first: the dead one is the cause, ranks that fail because of it only follow.
  for (auto& watched : processes_) look_at_process(*communicator, watched);
  look_at_states(*communicator);
  return !communicator->failed();
}

std::int64_t PeerWatch::interests(std::vector<PollItem>& items) {
  for (const auto& watched : processes_)
    if (*watched.pidfd && !watched.ranks.empty()) items.push_back({.handle = watched.pidfd->get(), .want_read = true});
  return system_.now_ns() + look_every_ns;
}

void PeerWatch::look_at_process(Communicator& communicator, Watched& watched) {
  if (!gone(watched.pidfd->get(), watched.pid)) return;
  for (const Rank rank : watched.ranks) {
    const auto& header = communicator.members().peers[rank].area.header();
    if (header.state.load(std::memory_order_acquire) == RankState::closed) continue;
    if (auto failure = failure_of(communicator, rank)) {  // it said why before it went
      communicator.fail(*std::move(failure));
      return;
    }
    communicator.fail(communicator.lost(rank));
    return;
  }
  watched.ranks.clear();  // all left in order: nothing to wait for any more
}

void PeerWatch::look_at_states(Communicator& communicator) {
  if (auto failure = failure_of_any(communicator)) communicator.fail(*std::move(failure));
}

}  // namespace tutti
