#include "comm/peer_watch.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/fixed_text.h"
#include "base/host.h"
#include "comm/peer_failure.h"

namespace tutti {
namespace {

constexpr std::int64_t look_every_ns = 100'000'000;
constexpr std::int64_t look_ns_max = 120'000'000;       // most time that one look counts for, however late it is
constexpr std::int64_t look_again_ns = 10'000'000;      // while a rank is gone and calls go on
constexpr std::int64_t wait_is_new_ns = 1'000'000'000;  // who waits says so in each look, on a loaded machine rarely
constexpr int looks_until_stuck = 2;
constexpr int looks_until_asked = 3;
constexpr int looks_until_mute = 2, looks_until_mute_unseen = 4;  // where /proc shows a process, and where it does not

AreaHeader& header(const Communicator& communicator, Rank rank) {
  return communicator.members().peers[rank].area.header();
}

/// "10.0.0.9 (eth0, MTU 9000)"
std::string interface_text(const std::string& host, const std::string& name, int mtu) {
  const std::string size = mtu == 0 ? "MTU unknown" : fmt::format("MTU {}", mtu);
  return name.empty() ? fmt::format("{} ({})", host, size) : fmt::format("{} ({}, {})", host, name, size);
}

std::string interface_here(Communicator& communicator, const std::string& host) {
  Process& process = communicator.process();
  if (const auto own = process.network.interfaces.get(process.system, process.config, process.log))
    if (const auto at = std::ranges::find(*own, host, &OwnAddress::host); at != own->end())
      return interface_text(host, at->interface, mtu_of(at->interface));
  return host;
}

std::string interface_there(const Communicator& communicator, Rank peer, const std::string& host) {
  const auto& addresses = communicator.members().peers[static_cast<std::size_t>(peer)].addresses;
  const auto at = std::ranges::find(addresses, host, [](const PeerAddress& one) { return one.at.host; });
  return at == addresses.end() ? host : interface_text(host, at->interface, at->mtu);
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
  if (!communicator || (communicator->failed() && !communicator->members().spans_hosts())) return false;
  if (!communicator->failed() && lacks_descriptors(*communicator)) communicator->fail(lost_descriptors(*communicator));
  if (const auto& control = communicator->members().control) ends_seen_ = control->ends_known();
  for (auto& watched : processes_)
    if (!watched.ranks.empty() && watched.process->ended()) mark_all(*communicator, watched);
  send_local_ends(*communicator);
  if (communicator->failed()) return true;  // who still waits has to hear of others
  communicator->check_device();
  take_remote_ends(*communicator);
  check_ranks(*communicator);
  if (const std::int64_t now = system_.now_ns(); now - looked_ns_ >= look_every_ns && !communicator->failed()) {
    const std::int64_t passed_ns = std::min(now - std::exchange(looked_ns_, now), look_ns_max);
    beat(*communicator);
    // Ranks of other hosts leave it to this one to see what is stopped here.
    const bool stuck = silence_ns_ > 0 && (is_stuck(*communicator) || communicator->members().spans_hosts());
    for (auto& watched : processes_) {
      check_stopped(*communicator, watched, stuck ? passed_ns : 0);
      check_exec(*communicator, watched);
    }
    if (auto* const comparison = communicator->marks().comparison()) comparison->tell();
    if (const auto& control = communicator->members().control)
      control->send_wait(header(*communicator, communicator->rank()).waits.load(std::memory_order_relaxed));
    check_large_packets(*communicator);
  }
  if (auto* const comparison = communicator->marks().comparison(); comparison != nullptr && !communicator->failed())
    if (auto alike = comparison->look(); !alike) communicator->fail(std::move(alike).error());
  return !communicator->failed() || communicator->members().spans_hosts();
}

std::int64_t PeerWatch::poll_set(std::vector<PollItem>& items) {
  for (const auto& watched : processes_)
    if (!watched.ranks.empty()) watched.process->poll_set(items);
  const auto communicator = communicator_.lock();
  const auto* const control = communicator ? communicator->members().control.get() : nullptr;
  if (control != nullptr && control->ends_known() != ends_seen_) return system_.now_ns();
  const bool hurries =
      communicator && communicator->failure().gone().any() && !communicator->order().idle() && !communicator->failed();
  return system_.now_ns() + (hurries ? look_again_ns : look_every_ns);
}

/// Whether the program has closed what this thread watches peers by. They seem to have ended then, and have not.
bool PeerWatch::lacks_descriptors(const Communicator& communicator) const {
  const auto& control = communicator.members().control;
  return communicator.process().service.lost_descriptors() || (control && control->lost_descriptors()) ||
         std::ranges::any_of(processes_, [](const Watched& watched) { return watched.process->lost_handle(); });
}

/// A process that has become another program by exec has not ended, but is no rank any more: its service thread does
/// not beat, and nobody serves by its name.
void PeerWatch::check_exec(Communicator& communicator, Watched& watched) const {
  if (watched.ranks.empty()) return;
  const Rank rank = watched.ranks.front();
  const std::uint32_t beats = header(communicator, rank).beats.load(std::memory_order_relaxed);
  if (std::exchange(watched.last_beats, beats) != beats) watched.quiet_looks = 0;
  if (++watched.quiet_looks % looks_until_asked != 0) return;
  // A process that has moved to another network namespace finds nobody there, itself neither.
  if (is_served(communicator.members().peers[static_cast<std::size_t>(rank)].fd_server) ||
      !is_served(communicator.process().memory.fd_server_name())) {
    watched.unserved_looks = 0;
    return;
  }
  // Nor does anybody answer for a process that is being ended, which is not to be taken for one that lives.
  if (watched.process->is_ending()) return;
  const int enough = watched.process->shows_stops() ? looks_until_mute : looks_until_mute_unseen;
  if (++watched.unserved_looks >= enough) mark_all(communicator, watched, /*mute=*/true);
}

void PeerWatch::mark_all(Communicator& communicator, Watched& watched, bool mute) const {
  for (const Rank rank : watched.ranks)
    if (header(communicator, rank).state_now() != RankState::closed)
      communicator.failure().gone().mark(rank, system_.now_ns(), mute);
  watched.ranks.clear();
}

/// Ranks that have ended or are lost first: they are the cause, and ranks that fail because of it the consequence.
/// Silent ones last: of several that are cut off together, all ranks are to name the same one.
void PeerWatch::check_ranks(Communicator& communicator) const {
  enum class Turn { cause, failed, silent };
  const auto turn_of = [&](Rank rank) {
    const RankState state = header(communicator, rank).state_now();
    return state == RankState::failed ? Turn::failed : state == RankState::silent ? Turn::silent : Turn::cause;
  };
  for (const Turn turn : {Turn::cause, Turn::failed, Turn::silent})
    for (Rank rank = 0; rank < communicator.ranks() && !communicator.failed(); ++rank) {
      if (rank == communicator.rank() || turn_of(rank) != turn) continue;
      auto failure = failure_of(communicator, rank);
      if (!failure) continue;
      communicator.failure().gone().mark(rank, system_.now_ns());
      if (ends_all(communicator, rank))
        communicator.fail(*std::move(failure));
      else
        communicator.failure().note_loss(*std::move(failure), communicator.order().idle());
    }
}

/// Ranks of other hosts may have no connection to a rank of this one.
void PeerWatch::send_local_ends(const Communicator& communicator) {
  const Membership& members = communicator.members();
  if (!members.control) return;
  for (Rank rank = 0; rank < members.ranks; ++rank) {
    if (rank == members.rank || members.peers[static_cast<std::size_t>(rank)].remote() || told_.has(rank)) continue;
    const AreaHeader& theirs = header(communicator, rank);
    const RankState state = theirs.state_now();
    const bool left = state == RankState::closed;
    const bool ended = state == RankState::open && communicator.failure().gone().since_ns(rank) != 0;
    const bool gone =
        left || ended || state == RankState::failed || state == RankState::aborted || state == RankState::damaged;
    if (!gone) continue;
    told_.add(rank);
    const int culprit = state == RankState::failed ? theirs.culprit.load(std::memory_order_relaxed) : -1;
    const auto why = left ? std::nullopt : failure_of(communicator, rank);
    members.control->send_gone({.rank = rank, .left = left, .culprit = culprit, .words = why ? why->what : ""});
  }
}

/// Of ranks to which this one has no connection.
void PeerWatch::take_remote_ends(Communicator& communicator) {
  const Membership& members = communicator.members();
  if (!members.control) return;
  for (const GoneRank& gone : members.control->take_gone()) {
    if (gone.rank >= members.ranks || !members.peers[static_cast<std::size_t>(gone.rank)].remote()) continue;
    AreaHeader& theirs = header(communicator, gone.rank);
    // The service thread writes the headers of ranks of other hosts, and this is it.
    if (theirs.state_now() != RankState::open) continue;
    const auto state = gone.left ? RankState::closed : RankState::lost;
    RankEnd{.state = state, .culprit = gone.culprit, .words = gone.words}.write(theirs);
  }
}

/// Whether the communicator fails now because of a rank that is gone.
bool PeerWatch::ends_all(const Communicator& communicator, Rank rank) const {
  if (!completes_calls(communicator, rank)) return true;
  // Kernels that wait for it have no number by which to know whether it had completed them.
  const std::int64_t gone_ns = system_.now_ns() - communicator.failure().gone().since_ns(rank);
  if (communicator.device() != nullptr && gone_ns >= last_news_ns) return true;
  const CallOrder& order = communicator.order();
  const std::uint64_t completed = order.last_completed();  // before what is entered: a call may end meanwhile
  if (order.entered() == completed) return false;
  // How many calls a lost rank had completed, nobody knows. What needs it finds out itself.
  const AreaHeader& theirs = header(communicator, rank);
  if (theirs.state_now() == RankState::lost) return false;
  return completed >= theirs.completed.load(std::memory_order_acquire);
}

/// Sign of life for processes that cannot see in /proc whether this process is stopped.
void PeerWatch::beat(Communicator& communicator) {
  AreaHeader& own = header(communicator, communicator.rank());
  const auto blind = [](const Watched& watched) { return !watched.process->shows_stops(); };
  if (std::ranges::any_of(processes_, blind)) own.traced.store(is_traced() ? 1 : 0, std::memory_order_relaxed);
  own.beats.fetch_add(1, std::memory_order_relaxed);
}

/// Whether this rank has been in one call for a while, or waits for a message. A stopped peer does not harm a rank that
/// waits for nothing.
bool PeerWatch::is_stuck(Communicator& communicator) {
  const std::uint64_t completed = communicator.order().completed();
  const bool waits = system_.now_ns() - communicator.waits().noted_ns() < wait_is_new_ns;
  if ((communicator.order().idle() && !waits) || std::exchange(completed_, completed) != completed) looks_ = 0;
  return ++looks_ > looks_until_stuck;
}

void PeerWatch::check_stopped(Communicator& communicator, Watched& watched, std::int64_t passed_ns) const {
  if (watched.ranks.empty()) return;
  const Rank rank = watched.ranks.front();
  const AreaHeader& theirs = header(communicator, rank);
  const auto loss = watched.life.look(*watched.process, theirs, system_.now_ns(), passed_ns, silence_ns_);
  if (loss && theirs.state_now() == RankState::open)
    communicator.fail(loss->error(communicator.members().describe(rank), rank));
}

/// Small packets pass, large ones do not: TCP alone would wait for a quarter of an hour, and longer if data goes both
/// ways. No loss at random is as long as that. Where there is no sign of life, others see it sooner.
void PeerWatch::check_large_packets(Communicator& communicator) {
  constexpr std::int64_t every_ns = 1'000'000'000, least_ns = 10'000'000'000;
  const Membership& members = communicator.members();
  const std::int64_t now = system_.now_ns();
  if (silence_ns_ == 0 || !members.control || now - looked_at_wires_ns_ < every_ns || communicator.failed()) return;
  looked_at_wires_ns_ = now;
  const auto lives = [&](Rank peer) {
    const auto heard = members.control->hears(peer);
    return header(communicator, peer).state_now() == RankState::open && (!heard || heard->lately);
  };
  const auto stuck = members.unacknowledged->look(system_, std::max(2 * silence_ns_, least_ns), lives);
  if (!stuck) return;
  const auto heard = members.control->hears(stuck->peer);
  const bool on_the_same_path = heard && heard->at == stuck->there;
  communicator.fail(
      {.code = Code::remote,
       .what = fmt::format(
           "the network between {} and {} {}: from {} to {} nothing has been acknowledged for {:.0f} s although it was "
           "sent {} times more{}",
           members.describe(communicator.rank()), members.describe(stuck->peer),
           on_the_same_path ? "loses large packets" : "is cut there, or loses large packets",
           interface_here(communicator, stuck->here), interface_there(communicator, stuck->peer, stuck->there),
           stuck->seconds, stuck->again,
           on_the_same_path
               ? ", while signs of life of that rank arrive. Set the same MTU on both interfaces and on all that is "
                 "between them"
               : ". If ping gets through between these two, set the same MTU on both and on all that is between them"),
       .peer = std::max(communicator.rank(), stuck->peer)});  // the same one at both ends
}

}  // namespace tutti
