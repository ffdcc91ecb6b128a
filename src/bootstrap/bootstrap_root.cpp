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
  failed.told(rank);
  if (auto done = roster.leave(rank, reason, left); !done) {
    Error error = std::move(done).error();
    if (!roster.all_here()) error.what += "; " + roster.missing(acceptor.refusals(), system.now_ns()).what;
    fail(std::move(error));
  }
}

void BootstrapRoot::State::fail(Error error) {
  if (failed.why()) return;
  const std::int64_t now = system.now_ns();
  const std::int64_t since = roster.ranks() > 0 ? roster.waiting_since_ns() : now;
  failed.begin(std::move(error), roster.ranks(), since + limits.init_ms * ms, now);
  acceptor.lend_spare();
  // A rank of this process is told last: it may end the process at once, before this thread goes on, and then the
  // others would not get the message.
  from_here.await();
  for (const bool here : {false, true})
    for (Member& member : members)
      if (member.wire.socket() && member.here == here) tell(member, *failed.why());
  // The other ranks get the message from their parents.
  for (int rank = 0; rank < roster.ranks(); ++rank)
    if (roster.admitted(rank)) failed.told(rank);
  failed.end_soon_if_all_told(system.now_ns());
}

void BootstrapRoot::State::tell(Member& member, const Error& error) {
  if (member.told) return;
  member.told = true;
  member.deadline_ns = system.now_ns() + bootstrap::FailedStart::farewell_ns;
  failed.told(member.rank);
  member.wire.queue(frame(FrameKind::failure, bootstrap::write_failure(error)));
  (void)member.wire.flush();
  failed.end_soon_if_all_told(system.now_ns());
}

void BootstrapRoot::State::publish_complete_rounds() {
  if (failed.why() || !roster.round_complete()) return;
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
  if (!for_those_here || failed.why() || std::ranges::any_of(members, waits)) return;
  send_answer(std::exchange(for_those_here, nullptr), /*here=*/true);
}

/// Once, when all ranks have the first answer; by then the counts from below have arrived.
void BootstrapRoot::State::report_start() {
  if (report.said_met() || rounds == 0) return;
  std::uint64_t refused = refused_below + acceptor.refusals().count();
  for (const bootstrap::RootMember& member : members) {
    if (member.state == Member::State::seated && !member.told && member.confirmed == 0) return;
    refused += member.refused;
  }
  report.say_met(roster.ranks(), tree, acceptor.refusals(), refused);
}

void BootstrapRoot::State::keep_limits() {
  if (failed.why() || !roster.waiting()) return;
  const std::int64_t now = system.now_ns();
  const std::int64_t since = roster.waiting_since_ns();
  const std::string refused = acceptor.refusals().words();
  if (now >= limit_ns()) {
    Error error = roster.missing(acceptor.refusals(), now);
    if (!refused.empty()) error.what += ". " + refused;
    fail(std::move(error));
  } else if (const auto due_ns = report.missing_ns(since); due_ns && now >= *due_ns) {
    report.say_missing(
        since, fmt::format("{}.\n  {}{}Giving up at {:.3g} s.", roster.missing(acceptor.refusals(), now).what, refused,
                           refused.empty() ? "" : " ", static_cast<double>(limit_ns() - since) * 1e-9));
  }
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
  return state_->from_here.awaited();
}

bool BootstrapRoot::is_of(const Secret& secret) const {
  return equal_in_constant_time(state_->secret, secret);
}

void BootstrapRoot::advise(const std::string& advice) {
  state_->roster.advise(advice);
}

void BootstrapRoot::excuse(int rank, int ranks, const Error& why, bool linger) {
  state_->from_here.add(bootstrap::excused({.rank = rank, .ranks = ranks, .process = this_process()}, why), linger);
}

bool BootstrapRoot::advance() {
  State& state = *state_;
  for (const bootstrap::Excused& one : state.from_here.take())
    if (!state.roster.all_here()) state.excuse(one);
  state.let_in();
  state.serve_members();
  state.give_places();
  state.publish_complete_rounds();
  state.answer_those_here();
  state.report_start();
  state.keep_limits();
  std::erase_if(state.members, [](const bootstrap::RootMember& member) { return !member.wire.socket(); });
  const bool awaited = std::ranges::any_of(state.members, [](const auto& member) { return !member.here; });
  const std::int64_t now = state.system.now_ns();
  state.from_here.wait_only_if(awaited || (!state.from_here.others_know() && state.failed.lingers(now)));
  if (!state.members.empty()) return true;
  return state.failed.why() ? !state.failed.over(now) : !state.roster.all_here() || !state.acceptor.idle();
}

std::int64_t BootstrapRoot::poll_set(std::vector<PollItem>& items) {
  const State& state = *state_;
  std::int64_t wake = state.acceptor.poll_set(items, state.accepting());
  const auto not_later = [&wake](std::int64_t then) { wake = std::min(wake, then); };
  for (const bootstrap::RootMember& member : state.members) {
    items.push_back(member.wire.interest());
    if (member.told || member.state == bootstrap::RootMember::State::waiting) not_later(member.deadline_ns);
  }
  if (state.failed.why()) {
    not_later(state.failed.wake_ns(!state.from_here.others_know() && state.failed.lingers(state.system.now_ns())));
  } else if (state.roster.waiting()) {
    not_later(state.limit_ns());
    if (const auto due_ns = state.report.missing_ns(state.roster.waiting_since_ns())) not_later(*due_ns);
  }
  return wake;
}

}  // namespace tutti
