// The listening side of the bootstrap: lets in who knows the secret, and is the middle of the star.
#include <algorithm>
#include <deque>
#include <list>
#include <set>

#include <fmt/format.h>

#include "base/host.h"
#include "comm/bootstrap.h"
#include "comm/bootstrap_messages.h"
#include "comm/digest.h"
#include "comm/handshake.h"
#include "comm/roster.h"
#include "comm/wire.h"

namespace tutti {
namespace {

using bootstrap::Refusals;
using bootstrap::Roster;

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t proof_limit_ns = 2'000 * ms;     // from accept to proof
constexpr std::int64_t farewell_limit_ns = 2'000 * ms;  // for a rank to read why it failed
constexpr std::int64_t accept_pause_ns = 20 * ms;       // when there are no descriptors
constexpr std::int64_t accept_limit_ns = 2'000 * ms;    // for them to come back
constexpr std::size_t pending_max = 64;
constexpr int accepts_per_turn = 64;  // so that a flood does not keep those inside waiting

/// A connection that has not proved anything yet.
struct Pending {
  Wire wire;
  std::string host;
  std::int64_t deadline_ns;
  handshake::RootSide handshake = {};
};

/// A connection that knows the secret.
struct Member {
  Wire wire;
  int rank;  ///< as claimed; believed once joined
  bool joined = false;
  bool here = false;             ///< in this process
  bool told = false;             ///< the failure is on its way; only its end is awaited
  std::int64_t deadline_ns = 0;  ///< of the farewell
};

std::string words(const Error& error) {
  return error.code == Code::remote ? error.what : error.text();
}

}  // namespace

struct BootstrapRoot::State {
  State(System& system_in, Socket listener_in, const Secret& secret_in, const BootstrapLimits& limits_in, Warn warn_in)
      : system(system_in),
        listener(std::move(listener_in)),
        secret(secret_in),
        limits(limits_in),
        warn(std::move(warn_in)),
        roster(limits_in.blob_bytes_max) {}
  ~State() { wipe(secret); }

  void accept_some();
  void accept_later(Error error);
  bool greet(Pending& pending);
  void serve_members();
  void serve(Member& member);
  void obey(Member& member, const Frame& frame);
  void join(Member& member, const Bytes& body);
  void lose(Member& member, const std::string& reason);
  void fail(Error error);
  void tell(Member& member, const Error& error);
  void end_soon_if_all_told();
  void publish_complete_rounds();
  void keep_limits();
  bool finished() const;

  std::int64_t limit_ns() const {
    return roster.give_up_ns().value_or(roster.waiting_since_ns() + limits.init_ms * ms);
  }
  std::int64_t report_ns() const { return roster.waiting_since_ns() + limits.missing_report_ms * ms; }
  bool report_due() const {
    return warn && limits.missing_report_ms > 0 && reported_since_ns != roster.waiting_since_ns();
  }

  System& system;
  Socket listener;
  SocketAddress at;
  Secret secret;
  BootstrapLimits limits;
  Warn warn;
  std::deque<Pending> pending;
  std::list<Member> members;
  Roster roster;
  Refusals refusals;
  std::optional<Error> failure;
  std::set<int> told_ranks;  ///< who needs no words any more
  std::int64_t end_ns = 0;   ///< of telling the failure
  std::int64_t accept_again_ns = 0;
  std::int64_t accept_failing_ns = 0;   ///< since when; 0: it does not
  std::int64_t reported_since_ns = -1;  ///< the wait that has been reported
};

void BootstrapRoot::State::accept_some() {
  const std::int64_t now = system.now_ns();
  if (!listener || now < accept_again_ns) return;
  for (int i = 0; i < accepts_per_turn; ++i) {
    auto socket = system.accept(listener);
    if (!socket) return accept_later(std::move(socket).error());
    accept_failing_ns = 0;
    if (!*socket) return;
    const auto peer = system.peer_address(*socket);
    if (pending.size() == pending_max) {
      refusals.add(pending.front().host);
      pending.pop_front();
    }
    pending.push_back({.wire = Wire(system, *std::move(socket)),
                       .host = peer ? peer->host : "an unknown address",
                       .deadline_ns = now + proof_limit_ns});
  }
}

/// Those who wait outside cannot be told; each connection that goes lets one of them in.
void BootstrapRoot::State::accept_later(Error error) {
  const std::int64_t now = system.now_ns();
  accept_again_ns = now + accept_pause_ns;
  if (accept_failing_ns == 0) accept_failing_ns = now;
  if (now - accept_failing_ns >= accept_limit_ns)
    fail(std::move(error).during(fmt::format("the root lets in {} ranks and no more (see ulimit -n)", members.size())));
}

/// False: the connection is to be dropped, or has become a member.
bool BootstrapRoot::State::greet(Pending& one) {
  // What a closed connection sent before is still there to be read, so a failed flush is no news yet.
  (void)one.wire.flush();
  while (true) {
    const bool challenged = one.handshake.challenged();
    auto bytes = one.wire.take(challenged ? handshake::proof_bytes : handshake::hello_bytes);
    if (!bytes) {
      // It knew how to say hello, saw our challenge, and hung up: it has another secret.
      if (challenged) refusals.add_claim(one.handshake.rank(), one.host);
      return false;
    }
    if (!*bytes) return system.now_ns() < one.deadline_ns;
    if (challenged) {
      if (!one.handshake.verify(secret, **bytes)) {
        refusals.add_claim(one.handshake.rank(), one.host);
        return false;
      }
      members.push_back({.wire = std::move(one.wire), .rank = one.handshake.rank()});
      if (one.handshake.version() != handshake::protocol_version)
        fail(Error{
            .code = Code::invalid_usage,
            .what = fmt::format("rank {} at {} speaks version {} of the start protocol, the root version {}",
                                one.handshake.rank(), one.host, one.handshake.version(), handshake::protocol_version)});
      if (failure) tell(members.back(), *failure);
      return false;
    }
    auto challenge = one.handshake.challenge(secret, **bytes);
    if (!challenge) return false;
    one.wire.queue(*std::move(challenge));
    (void)one.wire.flush();
  }
}

/// One look at all, instead of one at each: there may be hundreds, of whom a few have something to say.
void BootstrapRoot::State::serve_members() {
  std::vector<PollItem> items;
  for (const Member& member : members) items.push_back(member.wire.interest());
  system.poll(items, 0);
  const std::int64_t now = system.now_ns();
  auto item = items.begin();
  for (Member& member : members)
    if (const bool ready = (item++)->ready; ready || (member.told && now >= member.deadline_ns)) serve(member);
}

void BootstrapRoot::State::serve(Member& member) {
  (void)member.wire.flush();
  while (!member.told) {
    auto frame = member.wire.take_frame(member.joined ? bootstrap::contribution_bytes_max(limits.blob_bytes_max)
                                                      : bootstrap::join_bytes_max);
    if (!frame) return lose(member, words(frame.error()));
    if (!*frame) return;
    obey(member, **frame);
    if (!member.wire.socket()) return;
  }
  if (!member.wire.drain() || system.now_ns() >= member.deadline_ns) member.wire = Wire(system, Socket());
}

void BootstrapRoot::State::obey(Member& member, const Frame& frame) {
  if (!member.joined && frame.kind == FrameKind::join) return join(member, frame.body);
  if (frame.kind == FrameKind::bye) return lose(member, "it left");
  if (!member.joined || frame.kind != FrameKind::contribute) return lose(member, "it sent a frame of a wrong kind");
  auto contribution = bootstrap::read_contribution(frame.body, limits.blob_bytes_max);
  if (!contribution) return lose(member, words(contribution.error()));
  if (auto done = roster.contribute(member.rank, *std::move(contribution), system.now_ns()); !done)
    fail(std::move(done).error());
}

void BootstrapRoot::State::join(Member& member, const Bytes& body) {
  const auto who = bootstrap::read_join(body);
  if (!who) return lose(member, words(who.error()));
  member.rank = who->rank;
  const bool complete = roster.all_here();
  if (auto admitted = roster.admit(*who, system.now_ns()); !admitted) {
    // Those who have all met already need not suffer from one who comes too late.
    if (complete) return tell(member, admitted.error());
    return fail(std::move(admitted).error());
  }
  member.joined = true;
  member.here = who->process == this_process();
  member.wire.queue(frame(FrameKind::welcome, {}));
  (void)member.wire.flush();
}

void BootstrapRoot::State::lose(Member& member, const std::string& reason) {
  member.wire = Wire(system, Socket());
  if (!member.joined || member.told) return;
  told_ranks.insert(member.rank);
  if (auto done = roster.leave(member.rank, reason); !done) {
    Error error = std::move(done).error();
    if (!roster.all_here()) error.what += "; " + roster.missing(refusals, system.now_ns()).what;
    fail(std::move(error));
  }
}

void BootstrapRoot::State::fail(Error error) {
  if (failure) return;
  failure = std::move(error);
  // Those who come later are told as well.
  const std::int64_t now = system.now_ns();
  const std::int64_t since = roster.ranks() > 0 ? roster.waiting_since_ns() : now;
  end_ns = std::max(since + limits.init_ms * ms, now) + farewell_limit_ns;
  // A rank of this very process comes last: it may end the process, and then the others would not hear why.
  for (const bool here : {false, true})
    for (Member& member : members)
      if (member.wire.socket() && member.here == here) tell(member, *failure);
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

/// With all ranks told or lost there may be one whose connection broke before it heard, and who comes again at once.
void BootstrapRoot::State::end_soon_if_all_told() {
  if (failure && roster.ranks() > 0 && static_cast<int>(told_ranks.size()) >= roster.ranks())
    end_ns = std::min(end_ns, system.now_ns() + farewell_limit_ns);
}

void BootstrapRoot::State::publish_complete_rounds() {
  if (failure || !roster.round_complete()) return;
  // Everybody is inside, and knows it: nobody else has any business here.
  listener = Socket();
  const auto gathered = frame(FrameKind::gathered, roster.take_gathered());
  for (Member& member : members) {
    if (!member.joined) continue;
    member.wire.queue(gathered);
    (void)member.wire.flush();
  }
}

void BootstrapRoot::State::keep_limits() {
  if (failure || !roster.waiting()) return;
  const std::int64_t now = system.now_ns();
  const std::string refused = refusals.words();
  if (now >= limit_ns()) {
    Error error = roster.missing(refusals, now);
    if (!refused.empty()) error.what += ". " + refused;
    fail(std::move(error));
  } else if (report_due() && now >= report_ns()) {
    reported_since_ns = roster.waiting_since_ns();
    warn(fmt::format("{}.\n  {}{}Giving up at {:.3g} s.", roster.missing(refusals, now).what, refused,
                     refused.empty() ? "" : " ", static_cast<double>(limit_ns() - roster.waiting_since_ns()) * 1e-9));
  }
}

bool BootstrapRoot::State::finished() const {
  if (failure) {
    return members.empty() && system.now_ns() >= end_ns;
  }
  return roster.all_here() && members.empty() && pending.empty();
}

Result<std::unique_ptr<BootstrapRoot>> BootstrapRoot::open(System& system, const SocketAddress& at,
                                                           const Secret& secret, const BootstrapLimits& limits,
                                                           Warn warn) {
  auto listener = system.listen(at);
  if (!listener) return std::move(listener).error();
  auto address = system.address(*listener);
  if (!address) return std::move(address).error();
  auto state = std::make_unique<State>(system, *std::move(listener), secret, limits, std::move(warn));
  state->at = *std::move(address);
  return std::unique_ptr<BootstrapRoot>(new BootstrapRoot(std::move(state)));
}

BootstrapRoot::BootstrapRoot(std::unique_ptr<State> state) : state_(std::move(state)) {}
BootstrapRoot::~BootstrapRoot() = default;
SocketAddress BootstrapRoot::address() const {
  return state_->at;
}

bool BootstrapRoot::advance() {
  State& state = *state_;
  state.accept_some();
  std::erase_if(state.pending, [&state](Pending& one) {
    if (state.greet(one)) return false;
    if (one.wire.socket()) state.refusals.add(one.host);
    return true;
  });
  state.serve_members();
  state.publish_complete_rounds();
  state.keep_limits();
  std::erase_if(state.members, [](const Member& member) { return !member.wire.socket(); });
  return !state.finished();
}

std::int64_t BootstrapRoot::interests(std::vector<PollItem>& items) {
  const State& state = *state_;
  std::int64_t wake = state.system.now_ns() + 3'600'000 * ms;
  const auto not_later = [&wake](std::int64_t then) { wake = std::min(wake, then); };
  if (state.listener && state.system.now_ns() >= state.accept_again_ns)
    items.push_back({.handle = state.listener.handle(), .want_read = true});
  else if (state.listener)
    not_later(state.accept_again_ns);
  for (const Pending& one : state.pending) {
    items.push_back(one.wire.interest());
    not_later(one.deadline_ns);
  }
  for (const Member& member : state.members) {
    items.push_back(member.wire.interest());
    if (member.told) not_later(member.deadline_ns);
  }
  if (state.failure) {
    not_later(state.end_ns);
  } else if (state.roster.waiting()) {
    not_later(state.limit_ns());
    if (state.report_due()) not_later(state.report_ns());
  }
  return wake;
}

}  // namespace tutti
