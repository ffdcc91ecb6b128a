#include "comm/call_comparison.h"

#include <algorithm>

#include "comm/control_links.h"
#include "net/control_graph.h"

namespace tutti {
namespace {

/// Time for the peer to send the calls among which the difference lies, or to find the difference itself and report it.
constexpr std::int64_t name_limit_ns = 500'000'000;

}  // namespace

CallComparison::CallComparison(System& system, const Membership& members, const CallHistory& history,
                               const std::atomic<bool>& failed)
    : system_(system), members_(members), history_(history), failed_(failed) {
  for (Rank rank = 0; rank < members.ranks; ++rank)
    if (rank != members.rank && members.hosts[rank] == members.hosts[members.rank]) compared_.push_back({.rank = rank});
  for (const Rank rank : control_neighbours(members.rank, members.hosts)) compared_.push_back({.rank = rank});
}

void CallComparison::tell() {
  const std::lock_guard lock(mutex_);
  send_to_all(/*ask=*/false);
}

Result<void> CallComparison::look() {
  const std::lock_guard lock(mutex_);
  return compare_all();
}

Result<void> CallComparison::check_before_leaving(std::int64_t limit_ns) {
  constexpr std::int64_t poll_timeout_ns = 200'000;
  if (history_.latest() == 0) return {};
  const std::int64_t end_ns = system_.now_ns() + limit_ns;
  for (bool first = true;; first = false) {
    auto all = TUTTI_TRY(poll_peers(/*ask=*/first));
    if (all || failed_.load(std::memory_order_acquire) || system_.now_ns() >= end_ns) return {};
    system_.poll({}, poll_timeout_ns);
  }
}

/// For a rank that leaves: true once every peer's summary covers the last call of this rank.
Result<bool> CallComparison::poll_peers(bool ask) {
  const std::lock_guard lock(mutex_);
  send_to_all(ask);
  TUTTI_TRY(compare_all());
  for (const Compared& with : compared_)
    if (with.ahead)
      return more_calls(own(history_.latest()), {with.rank, with.ahead->sequence(), with.ahead->last.signature});
  return std::ranges::all_of(compared_, [this](const Compared& with) { return settled(with); });
}

std::optional<Error> CallComparison::left_early(Rank peer) {
  const std::lock_guard lock(mutex_);
  const auto with = std::ranges::find(compared_, peer, &Compared::rank);
  const auto theirs = header(peer).calls.load();
  if (with == compared_.end() || !theirs) return std::nullopt;
  auto checked = check_leaver(*with, *theirs);
  if (checked) return std::nullopt;
  return std::move(checked).error();
}

Result<void> CallComparison::compare_all() {
  TUTTI_TRY(check_calls());
  for (Compared& with : compared_) TUTTI_TRY(compare(with));
  return {};
}

/// Sends the summary to ranks of other hosts. Ranks of this host read it in this rank's area.
void CallComparison::send_to_all(bool ask) {
  const auto last = history_.last();
  if (ask)
    for (Compared& with : compared_) with.answers = header(with.rank).answers.load(std::memory_order_acquire);
  if (!last || (!ask && last->sequence() == told_)) return;
  members_.control->send_summary(*last, ask);
  told_ = last->sequence();
}

Result<void> CallComparison::compare(Compared& with) {
  note_state(with);
  if (with.differing) {
    if (system_.now_ns() - with.differs_since_ns < name_limit_ns) return {};
    return differing_somewhere(with);
  }
  const std::uint64_t latest = history_.latest();
  const auto theirs = header(with.rank).calls.load();
  with.answered = with.answered && theirs;  // else the service thread is writing the next summary
  // In this order: else a summary kept for a call that this rank has made meanwhile would hide the latest one.
  if (with.ahead && with.ahead->sequence() <= latest) {
    const CallSummary reached = *std::exchange(with.ahead, std::nullopt);
    TUTTI_TRY(check(with, reached));
  }
  if (theirs && !with.differing && theirs->sequence() > with.agreed) {
    if (theirs->sequence() <= latest) {
      TUTTI_TRY(check(with, *theirs));
    } else if (!with.ahead) {
      with.ahead = theirs;
    }
  }
  return theirs ? check_leaver(with, *theirs) : Result<void>();
}

Result<void> CallComparison::check(Compared& with, const CallSummary& theirs) {
  const auto mine = history_.find(theirs.sequence());
  if (!mine) return {};  // too long ago: the peer compares it with this rank's summary
  if (mine->hash == theirs.hash) {
    with.agreed = std::max(with.agreed, theirs.sequence());
    return {};
  }
  // Calls before this one may have differed, too: the first that did is the one to name.
  if (theirs.sequence() == with.agreed + 1 && !(mine->last.signature == theirs.last.signature))
    return differing_calls(own(theirs.sequence()), {with.rank, theirs.sequence(), theirs.last.signature});
  with.differing = theirs;
  with.differs_since_ns = system_.now_ns();
  send_calls(with);
  return {};
}

/// The peer has not sent its calls.
Error CallComparison::differing_somewhere(const Compared& with) const {
  const CallSummary& theirs = *with.differing;
  const MadeCall mine = own(theirs.sequence());
  if (!(mine.signature == theirs.last.signature))
    return differing_calls(mine, {with.rank, theirs.sequence(), theirs.last.signature});
  return differing_between(members_.rank, with.rank, with.agreed, theirs.sequence());
}

/// Sends the peer this rank's calls after the last equal hash, as far as the history has them.
void CallComparison::send_calls(const Compared& with) const {
  std::vector<CallMark> marks;
  const std::uint64_t last = with.differing->sequence();
  const std::uint64_t kept = last - std::min<std::uint64_t>(last, CallHistory::kept);
  for (std::uint64_t sequence = std::max(with.agreed, kept) + 1; sequence <= last; ++sequence)
    if (const auto mine = history_.find(sequence)) marks.push_back(mine->last);
  members_.control->send_calls(with.rank, marks);
}

Result<void> CallComparison::check_calls() {
  for (const PeerCalls& told : members_.control->take_calls())
    for (const CallMark& theirs : told.marks) {
      const auto mine = history_.find(theirs.sequence);
      if (mine && !(mine->last.signature == theirs.signature))
        return differing_calls(own(theirs.sequence), {told.rank, theirs.sequence, theirs.signature});
    }
  return {};
}

Result<void> CallComparison::check_leaver(const Compared& with, const CallSummary& theirs) const {
  const bool left = header(with.rank).state_now() == RankState::closed;
  const std::uint64_t latest = history_.latest();
  // Read the summary again: one that was read before the state may not be the last.
  const auto last = left ? header(with.rank).calls.load() : std::nullopt;
  if (!last || last->sequence() < theirs.sequence() || last->sequence() >= latest) return {};
  return left_before(members_.describe(with.rank), {with.rank, last->sequence(), last->last.signature}, own(latest));
}

/// To be called before the summary is read: an answer that arrives in between would count although it was not compared.
void CallComparison::note_state(Compared& with) const {
  const AreaHeader& theirs = header(with.rank);
  with.ended = theirs.state_now() != RankState::open;
  // A remote peer may have made more calls since its last summary, so it must have answered.
  const bool asked = members_.peers[with.rank].remote();
  with.answered = !asked || theirs.answers.load(std::memory_order_acquire) != with.answers;
}

MadeCall CallComparison::own(std::uint64_t sequence) const {
  const auto made = history_.find(sequence);
  return {members_.rank, sequence, made ? made->last.signature : Signature{}};
}

}  // namespace tutti
