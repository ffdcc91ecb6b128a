#include "comm/peer_watch.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "comm/mismatch.h"
#include "comm/peer_failure.h"

namespace tutti {
namespace {

constexpr std::int64_t look_every_ns = 100'000'000;
constexpr int looks_until_stuck = 3;

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
  if (communicator->spans_hosts()) look_at_calls(*communicator);
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

/// Calls are compared where messages meet; of ranks that wait for different ones none may ever come.
void PeerWatch::look_at_calls(Communicator& communicator) {
  const CallHistory& history = communicator.history();
  ControlLinks& links = *communicator.members().control;
  if (communicator.idle() || std::exchange(last_call_, history.latest()) != history.latest()) looks_ = 0;
  if (last_call_ != 0 && ++looks_ == looks_until_stuck) links.tell_calls(history.all());
  for (PeerCalls& calls : links.take_calls()) {
    std::erase_if(to_compare_, [&](const PeerCalls& known) { return known.rank == calls.rank; });
    to_compare_.push_back(std::move(calls));
  }
  const std::uint64_t latest = history.latest();
  for (PeerCalls& calls : to_compare_) {
    for (const CallMark& theirs : calls.marks) {
      const auto own = history.find(theirs.sequence);
      if (!own || own->signature == theirs.signature) continue;
      return communicator.fail(differing_calls({communicator.rank(), own->sequence, own->signature},
                                               {calls.rank, theirs.sequence, theirs.signature}));
    }
    std::erase_if(calls.marks, [latest](const CallMark& theirs) { return theirs.sequence <= latest; });
  }
}

void PeerWatch::look_at_states(Communicator& communicator) {
  if (auto failure = failure_of_any(communicator)) communicator.fail(*std::move(failure));
}

}  // namespace tutti
