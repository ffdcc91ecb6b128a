#include "comm/peer_watch.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/host.h"
#include "comm/call_comparison.h"
#include "comm/peer_failure.h"

namespace tutti {
namespace {

constexpr std::int64_t look_every_ns = 100'000'000;
constexpr std::int64_t look_ns_max = 250'000'000;  // most time that one look counts for, however late it is
constexpr int looks_until_stuck = 2;

AreaHeader& header(const Communicator& communicator, Rank rank) {
  return communicator.members().peers[rank].area.header();
}

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

}  // namespace

PeerWatch::PeerWatch(const std::shared_ptr<Communicator>& communicator)
    : communicator_(communicator),
      system_(communicator->process().system),
      silence_ns_(communicator->process().config.integer("TUTTI_SILENCE_MS") * 1'000'000) {
  for (Rank rank = 0; rank < communicator->ranks(); ++rank) {
    const Peer& peer = communicator->members().peers[rank];
    if (!peer.process) continue;
    auto known = std::ranges::find(processes_, peer.token, &Watched::token);
    if (known == processes_.end())
      known = processes_.insert(processes_.end(), {.token = peer.token, .process = peer.process, .ranks = {}});
    known->ranks.push_back(rank);
  }
}

bool PeerWatch::advance() {
  const auto communicator = communicator_.lock();
  if (!communicator || communicator->failed()) return false;
  communicator->look_at_device();
  // Processes first: an ended process is the cause, and ranks that fail because of it are the consequence.
  for (auto& watched : processes_) look_at_process(*communicator, watched);
  look_at_states(*communicator);
  if (const std::int64_t now = system_.now_ns(); now - looked_ns_ >= look_every_ns && !communicator->failed()) {
    const std::int64_t passed_ns = std::min(now - std::exchange(looked_ns_, now), look_ns_max);
    beat(*communicator);
    const bool stuck = silence_ns_ > 0 && is_stuck(*communicator);
    for (auto& watched : processes_) look_for_stopped(*communicator, watched, stuck ? passed_ns : 0);
    if (auto* const comparison = communicator->comparison()) comparison->tell();
  }
  if (auto* const comparison = communicator->comparison(); comparison != nullptr && !communicator->failed())
    if (auto alike = comparison->look(); !alike) communicator->fail(std::move(alike).error());
  return !communicator->failed();
}

std::int64_t PeerWatch::poll_set(std::vector<PollItem>& items) {
  for (const auto& watched : processes_)
    if (!watched.ranks.empty()) watched.process->poll_set(items);
  return system_.now_ns() + look_every_ns;
}

void PeerWatch::look_at_process(Communicator& communicator, Watched& watched) {
  if (watched.ranks.empty() || !watched.process->ended()) return;
  for (const Rank rank : watched.ranks) {
    if (header(communicator, rank).state.load(std::memory_order_acquire) == RankState::closed) continue;
    if (auto failure = failure_of(communicator, rank)) {  // it left the reason before it ended
      communicator.fail(*std::move(failure));
      return;
    }
    communicator.fail(communicator.lost(rank));
    return;
  }
  watched.ranks.clear();  // all have left in order
}

/// Sign of life for processes that cannot see in /proc whether this process is stopped.
void PeerWatch::beat(Communicator& communicator) {
  AreaHeader& own = header(communicator, communicator.rank());
  const auto blind = [](const Watched& watched) { return !watched.process->shows_stops(); };
  if (std::ranges::any_of(processes_, blind)) own.traced.store(is_traced() ? 1 : 0, std::memory_order_relaxed);
  own.beats.fetch_add(1, std::memory_order_relaxed);
}

/// Whether this rank has been in one call for a while. A stopped peer does not harm a rank that waits for nothing.
bool PeerWatch::is_stuck(const Communicator& communicator) {
  const std::uint64_t completed = communicator.completed();
  if (communicator.idle() || std::exchange(completed_, completed) != completed) looks_ = 0;
  return ++looks_ > looks_until_stuck;
}

/// A process that is slow or has no core counts as running in /proc. If /proc does not show the process, it counts as
/// stopped once its service thread has been silent for the limit, in looks of this thread.
void PeerWatch::look_for_stopped(Communicator& communicator, Watched& watched, std::int64_t passed_ns) {
  if (watched.ranks.empty() || passed_ns == 0) {
    watched.silent_ns = 0;
    return;
  }
  const Rank rank = watched.ranks.front();
  const AreaHeader& theirs = header(communicator, rank);
  const bool open = theirs.state.load(std::memory_order_acquire) == RankState::open;
  if (watched.process->shows_stops()) {
    const std::int64_t stopped_ns = watched.process->stopped_ns(system_.now_ns());
    if (open && stopped_ns >= silence_ns_)
      communicator.fail(communicator.lost(rank, fmt::format("its process has been stopped for {:.1f} s (by SIGSTOP, "
                                                            "SIGTSTP or similar: state T in /proc; SIGCONT resumes it)",
                                                            seconds(stopped_ns))));
    return;
  }
  const std::uint32_t beats = theirs.beats.load(std::memory_order_relaxed);
  const bool alive = std::exchange(watched.beats, beats) != beats || theirs.traced.load(std::memory_order_relaxed) != 0;
  watched.silent_ns = alive ? 0 : watched.silent_ns + passed_ns;
  if (open && watched.silent_ns >= silence_ns_)
    communicator.fail(communicator.lost(
        rank,
        fmt::format("it does not answer any more: no sign of life for {:.1f} s, so its process is stopped or hangs",
                    seconds(watched.silent_ns))));
}

void PeerWatch::look_at_states(Communicator& communicator) {
  if (auto failure = failure_of_any(communicator)) communicator.fail(*std::move(failure));
}

}  // namespace tutti
