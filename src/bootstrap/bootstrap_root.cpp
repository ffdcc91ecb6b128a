// The listening side of the bootstrap: admits ranks that know the secret, gives each rank its place, and is the root of
// their tree.
#include <algorithm>

#include <fmt/format.h>

#include "base/host.h"
#include "bootstrap/bootstrap_messages.h"
#include "bootstrap/bootstrap_root_state.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t farewell_limit_ns = 2'000 * ms;  // for a rank to read why it failed
// how long the end of a process waits for ranks on their way that do not know why the start has failed
constexpr std::int64_t linger_ns = 3'000 * ms;
// ranks on their way to their place; others wait to be accepted
constexpr std::size_t moving_max = 64;

}  // namespace

bool BootstrapRoot::State::accepting() const {
  const auto moving = std::ranges::count_if(
      members, [](const bootstrap::RootMember& one) { return one.state != Member::State::seated && !one.told; });
  return static_cast<std::size_t>(moving) < moving_max;
}

void BootstrapRoot::State::lose(Member& member, const std::string& reason, bool left) {
  member.wire = Wire(system, Socket());
  if (!member.joined() && !member.told) acceptor.hung_up(member.rank, member.host);
  refused_below += std::exchange(member.refused, 0);
  if (member.joined() && !member.told) lose_rank(member.rank, reason, left);
}

void BootstrapRoot::State::lose_rank(int rank, const std::string& reason, bool left) {
  told_ranks.insert(rank);
  if (auto done = roster.leave(rank, reason, left); !done) {
    Error error = std::move(done).error();
    if (!roster.all_here()) error.what += "; " + roster.missing(acceptor.refusals(), system.now_ns()).what;
    fail(std::move(error));
  }
}

void BootstrapRoot::State::fail(Error error) {
  if (failure) return;
  failure = std::move(error);
  acceptor.lend_spare();
  // Ranks that come later are told too.
  const std::int64_t now = failed_ns = system.now_ns();
  const std::int64_t since = roster.ranks() > 0 ? roster.waiting_since_ns() : now;
  end_ns = std::max(since + limits.init_ms * ms, now) + farewell_limit_ns;
  // A rank of this process is told last: it may end the process at once, before this thread goes on, and then the
  // others would not get the message.
  awaited.store(true, std::memory_order_relaxed);
  for (const bool here : {false, true})
    for (Member& member : members)
      if (member.wire.socket() && member.here == here) tell(member, *failure);
  // The other ranks get the message from their parents.
  for (int rank = 0; rank < roster.ranks(); ++rank)
    if (roster.admitted(rank)) told_ranks.insert(rank);
  end_soon_if_all_told();
}

void BootstrapRoot::State::tell(Member& member, const Error& error) {
  if (member.told) return;
  member.told = true;
  member.deadline_ns = system.now_ns() + farewell_limit_ns;
  told_ranks.insert(member.rank);
  member.wire.queue(frame(FrameKind::failure, bootstrap::write_failure(error)));
  (void)member.wire.flush();
  end_soon_if_all_told();
}

/// When all ranks have been told or are lost, one may remain whose connection broke before it got the message and that
/// calls again at once.
void BootstrapRoot::State::end_soon_if_all_told() {
  if (failure && all_told()) end_ns = std::min(end_ns, system.now_ns() + farewell_limit_ns);
}

bool BootstrapRoot::State::all_told() const {
  const int ranks = std::max(roster.ranks(), excused_ranks);
  return ranks > 0 && static_cast<int>(told_ranks.size()) >= ranks;
}

/// Ranks that have not come within the limit of the start are not on their way.
bool BootstrapRoot::State::lingers() const {
  return failure && failure->code != Code::timeout && !others_know && !all_told() &&
         system.now_ns() < failed_ns + linger_ns;
}

void BootstrapRoot::State::publish_complete_rounds() {
  if (failure || !roster.round_complete()) return;
  // All ranks are connected and know it: no further connection is expected.
  acceptor.close();
  ++rounds;
  for_those_here = frame(FrameKind::gathered, roster.take_gathered());
  send_answer(for_those_here, /*here=*/false);
}

void BootstrapRoot::State::send_answer(const std::shared_ptr<const Bytes>& answer, bool here) {
  for (Member& member : members) {
    if (member.state != Member::State::seated || member.told || member.here != here) continue;
    member.wire.queue(answer);
    (void)member.wire.flush();
  }
}

/// A rank of this process hears last, when all that the others are to hear has left: it may end the process at once, by
/// _exit, and what has left arrives nevertheless.
void BootstrapRoot::State::answer_those_here() {
  const auto waits = [](const Member& member) { return !member.here && member.wire.interest().want_write; };
  if (!for_those_here || failure || std::ranges::any_of(members, waits)) return;
  send_answer(std::exchange(for_those_here, nullptr), /*here=*/true);
}

/// Once, when all ranks have the first answer; by then the counts from below have arrived.
void BootstrapRoot::State::report_start() {
  if (start_reported || rounds == 0) return;
  std::uint64_t refused = refused_below + acceptor.refusals().count();
  for (const bootstrap::RootMember& member : members) {
    if (member.state == Member::State::seated && !member.told && member.confirmed == 0) return;
    refused += member.refused;
  }
  start_reported = true;
  if (log.info)
    log.info(
        fmt::format("init: {} ranks met in a tree of depth {}, at most {} below each; the root had at most {} sockets",
                    roster.ranks(), tree.depth(), tree.widest(), sockets_most));
  if (refused > 0 && log.warn)
    log.warn(fmt::format("init: all {} ranks are here. {}", roster.ranks(), acceptor.refusals().words(refused)));
}

void BootstrapRoot::State::keep_limits() {
  if (failure || !roster.waiting()) return;
  const std::int64_t now = system.now_ns();
  const std::string refused = acceptor.refusals().words();
  if (now >= limit_ns()) {
    Error error = roster.missing(acceptor.refusals(), now);
    if (!refused.empty()) error.what += ". " + refused;
    fail(std::move(error));
  } else if (report_due() && now >= report_ns()) {
    reported_since_ns = roster.waiting_since_ns();
    log.warn(fmt::format("{}.\n  {}{}Giving up at {:.3g} s.", roster.missing(acceptor.refusals(), now).what, refused,
                         refused.empty() ? "" : " ",
                         static_cast<double>(limit_ns() - roster.waiting_since_ns()) * 1e-9));
  }
}

bool BootstrapRoot::State::finished() const {
  if (failure) return members.empty() && system.now_ns() >= end_ns;
  return roster.all_here() && members.empty() && acceptor.idle();
}

Result<std::unique_ptr<BootstrapRoot>> BootstrapRoot::open(System& system, const SocketAddress& at,
                                                           const Secret& secret, const BootstrapLimits& limits,
                                                           BootstrapLog log) {
  auto shared_listener = TUTTI_TRY(bootstrap::SharedListener::open(system, at));
  return open(system, shared_listener, secret, limits, std::move(log));
}

Result<std::unique_ptr<BootstrapRoot>> BootstrapRoot::open(
    System& system, const std::shared_ptr<bootstrap::SharedListener>& shared_listener, const Secret& secret,
    const BootstrapLimits& limits, BootstrapLog log) {
  auto registration = TUTTI_TRY(bootstrap::SharedListener::enter(shared_listener, secret));
  return std::unique_ptr<BootstrapRoot>(
      new BootstrapRoot(std::make_unique<State>(system, registration, secret, limits, std::move(log))));
}

BootstrapRoot::BootstrapRoot(std::unique_ptr<State> state) : state_(std::move(state)) {}
BootstrapRoot::~BootstrapRoot() = default;
SocketAddress BootstrapRoot::address() const {
  return state_->at;
}

bool BootstrapRoot::awaited() const {
  return state_->awaited.load(std::memory_order_relaxed);
}

bool BootstrapRoot::is_of(const Secret& secret) const {
  return equal_in_constant_time(state_->secret, secret);
}

void BootstrapRoot::advise(const std::string& advice) {
  state_->roster.advise(advice);
}

void BootstrapRoot::excuse(int rank, int ranks, const Error& why, bool linger) {
  auto said = bootstrap::excused({.rank = rank, .ranks = ranks, .process = this_process()}, why);
  const std::lock_guard lock(state_->mutex);
  state_->excuses_from_here.push_back(std::move(said));
  if (!linger) state_->others_know = true;
  state_->awaited.store(true, std::memory_order_relaxed);
}

bool BootstrapRoot::advance() {
  State& state = *state_;
  state.take_excuses_from_here();
  state.let_in();
  state.serve_members();
  state.give_places();
  state.publish_complete_rounds();
  state.answer_those_here();
  state.report_start();
  state.keep_limits();
  std::erase_if(state.members, [](const bootstrap::RootMember& member) { return !member.wire.socket(); });
  const bool awaited = std::ranges::any_of(state.members, [](const auto& member) { return !member.here; });
  {
    const std::lock_guard lock(state.mutex);
    state.awaited.store(awaited || state.lingers() || !state.excuses_from_here.empty(), std::memory_order_relaxed);
  }
  return !state.finished();
}

std::int64_t BootstrapRoot::poll_set(std::vector<PollItem>& items) {
  const State& state = *state_;
  std::int64_t wake = state.acceptor.poll_set(items, state.accepting());
  const auto not_later = [&wake](std::int64_t then) { wake = std::min(wake, then); };
  for (const bootstrap::RootMember& member : state.members) {
    items.push_back(member.wire.interest());
    if (member.told || member.state == bootstrap::RootMember::State::waiting) not_later(member.deadline_ns);
  }
  if (state.failure) {
    not_later(state.lingers() ? std::min(state.end_ns, state.failed_ns + linger_ns) : state.end_ns);
  } else if (state.roster.waiting()) {
    not_later(state.limit_ns());
    if (state.report_due()) not_later(state.report_ns());
  }
  return wake;
}

}  // namespace tutti
