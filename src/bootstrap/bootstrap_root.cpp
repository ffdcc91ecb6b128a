// The listening side of the bootstrap: lets in who knows the secret, gives each rank its place, and is the root of the
// tree they make.
#include <algorithm>
#include <list>
#include <set>

#include <fmt/format.h>

#include "base/host.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_acceptor.h"
#include "bootstrap/bootstrap_messages.h"
#include "bootstrap/bootstrap_tree.h"
#include "bootstrap/roster.h"
#include "net/digest.h"
#include "net/wire.h"

namespace tutti {
namespace {

using bootstrap::Acceptor;
using bootstrap::Roster;
using bootstrap::Tree;

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t farewell_limit_ns = 2'000 * ms;  // for a rank to read why it failed
constexpr std::int64_t place_limit_ns = 1'000 * ms;     // for those who were asked to say where they listen
constexpr std::size_t moving_max = 64;                  // on their way to their place; the others wait outside

/// A connection that knows the secret.
struct Member {
  enum class State {
    connection,  ///< has not said yet who it is
    waiting,     ///< for its place
    moving,      ///< to a place below another rank
    seated,      ///< below the root
  };
  Wire wire;
  int rank;  ///< as claimed; believed once it has joined
  std::string host = {};
  State state = State::connection;
  bool here = false;    ///< in this process
  bool listen = false;  ///< is to take others
  bool told = false;    ///< the failure is on its way; only its end is awaited
  std::uint32_t confirmed = 0;
  std::uint64_t refused = 0;     ///< connections, by those below
  std::int64_t deadline_ns = 0;  ///< of the farewell, or of the place

  bool joined() const { return state != State::connection; }
};

std::string words(const Error& error) {
  return error.code == Code::remote ? error.what : error.text();
}

}  // namespace

struct BootstrapRoot::State {
  State(System& system_in, const bootstrap::SharedListener::Registration& registration, const Secret& secret_in,
        const BootstrapLimits& limits_in, BootstrapLog log_in)
      : system(system_in),
        at(registration.shared_listener->at()),
        secret(secret_in),
        limits(limits_in),
        log(std::move(log_in)),
        acceptor(system_in, registration, secret),
        tree(limits_in.fan_out),
        roster(limits_in.blob_bytes_max) {}
  ~State() { wipe(secret); }

  void let_in();
  void serve_members();
  void serve(Member& member);
  void obey(Member& member, const Frame& frame);
  void obey_joined(Member& member, const Frame& frame);
  void join(Member& member, const Bytes& body);
  void give_places();
  void welcome(Member& member, int parent);
  void take_contribution(Member& member, const Bytes& body);
  void take_gone(Member& member, const Bytes& body);
  void take_confirmation(Member& member, const Bytes& body);
  void lose(Member& member, const std::string& reason, bool left = false);
  void lose_rank(int rank, const std::string& reason, bool left);
  void fail(Error error);
  void tell(Member& member, const Error& error);
  void end_soon_if_all_told();
  void publish_complete_rounds();
  void report_start();
  void keep_limits();
  bool finished() const;
  bool accepting() const;

  std::int64_t limit_ns() const {
    return roster.give_up_ns().value_or(roster.waiting_since_ns() + limits.init_ms * ms);
  }
  std::int64_t report_ns() const { return roster.waiting_since_ns() + limits.missing_report_ms * ms; }
  bool report_due() const {
    return log.warn && limits.missing_report_ms > 0 && reported_since_ns != roster.waiting_since_ns();
  }

  System& system;
  SocketAddress at;
  Secret secret;
  BootstrapLimits limits;
  BootstrapLog log;
  Acceptor acceptor;
  std::list<Member> members;
  Tree tree;
  Roster roster;
  std::optional<Error> failure;
  std::set<int> told_ranks;             ///< who needs no words any more
  std::int64_t end_ns = 0;              ///< of telling the failure
  std::int64_t reported_since_ns = -1;  ///< the wait that has been reported
  std::size_t sockets_most = 0;
  std::uint32_t rounds = 0;
  std::uint64_t refused_below = 0;  ///< connections, by those who have gone
  bool start_reported = false;
};

bool BootstrapRoot::State::accepting() const {
  const auto moving =
      std::ranges::count_if(members, [](const Member& one) { return one.state != Member::State::seated && !one.told; });
  return static_cast<std::size_t>(moving) < moving_max;
}

void BootstrapRoot::State::let_in() {
  for (Acceptor::AuthenticatedConnection& connection : acceptor.advance(accepting())) {
    members.push_back({.wire = std::move(connection.wire), .rank = connection.rank, .host = connection.host});
    if (connection.version != handshake::protocol_version)
      fail(Error{
          .code = Code::invalid_usage,
          .what = fmt::format("rank {} at {} speaks version {} of the start protocol, the root version {}",
                              connection.rank, connection.host, connection.version, handshake::protocol_version)});
    if (failure) tell(members.back(), *failure);
  }
  if (auto stuck = acceptor.stuck(); stuck && !failure && (!members.empty() || !acceptor.shared()))
    fail(
        std::move(*stuck).during(fmt::format("the root lets in {} ranks and no more (see ulimit -n)", members.size())));
  sockets_most = std::max(sockets_most, members.size() + acceptor.sockets());
}

/// One look at all, instead of one at each: few have something to say.
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
    auto frame =
        member.wire.take_frame(member.joined() ? std::max(bootstrap::contribution_bytes_max(limits.blob_bytes_max),
                                                          bootstrap::notice_bytes_max)
                                               : bootstrap::join_bytes_max);
    if (!frame) return lose(member, words(frame.error()));
    if (!*frame) return;
    obey(member, **frame);
    if (!member.wire.socket()) return;
  }
  if (!member.wire.drain() || system.now_ns() >= member.deadline_ns) member.wire = Wire(system, Socket());
}

void BootstrapRoot::State::obey(Member& member, const Frame& frame) {
  if (frame.kind == FrameKind::bye) return lose(member, "it left", /*left=*/true);
  if (member.joined()) return obey_joined(member, frame);
  return frame.kind == FrameKind::join ? join(member, frame.body) : lose(member, "it sent a frame of a wrong kind");
}

void BootstrapRoot::State::obey_joined(Member& member, const Frame& frame) {
  const bool moving = member.state == Member::State::moving;
  const bool seated = member.state == Member::State::seated;
  if (frame.kind == FrameKind::listens && member.listen && (moving || seated)) {
    auto where = bootstrap::read_listens(frame.body);
    if (!where) return lose(member, words(where.error()));
    member.listen = false;
    tree.listens(member.rank, *std::move(where));
  } else if (frame.kind == FrameKind::settled && moving) {
    member.wire = Wire(system, Socket());
  } else if (frame.kind == FrameKind::unreachable && moving) {
    tree.adopt(member.rank);
    welcome(member, Tree::root);
  } else if (frame.kind == FrameKind::contribute && seated) {
    take_contribution(member, frame.body);
  } else if (frame.kind == FrameKind::gone && seated) {
    take_gone(member, frame.body);
  } else if (frame.kind == FrameKind::confirm && seated) {
    take_confirmation(member, frame.body);
  } else if (frame.kind == FrameKind::failure && seated) {
    fail(bootstrap::read_failure(frame.body));
  } else {
    lose(member, "it sent a frame of a wrong kind");
  }
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
  member.state = Member::State::waiting;
  member.deadline_ns = system.now_ns() + place_limit_ns;
  member.here = who->process == this_process();
  member.listen = tree.arrive(who->rank, who->ranks);
}

void BootstrapRoot::State::give_places() {
  if (failure) return;
  for (Member& member : members) {
    if (member.state != Member::State::waiting || member.told || !member.wire.socket()) continue;
    auto parent = tree.place(member.rank);
    if (!parent && system.now_ns() < member.deadline_ns) continue;
    if (!parent) tree.adopt(member.rank);
    welcome(member, parent.value_or(Tree::root));
  }
}

void BootstrapRoot::State::welcome(Member& member, int parent) {
  bootstrap::Welcome place{.listen = member.listen && member.state == Member::State::waiting, .parent = parent};
  if (parent != Tree::root) {
    place.at = tree.address(parent);
    place.process = roster.process_of(parent);
  }
  roster.hang(member.rank, parent);
  member.state = parent == Tree::root ? Member::State::seated : Member::State::moving;
  member.wire.queue(frame(FrameKind::welcome, bootstrap::write_welcome(place)));
  (void)member.wire.flush();
}

void BootstrapRoot::State::take_contribution(Member& member, const Bytes& body) {
  auto contribution = bootstrap::read_contribution(body, limits.blob_bytes_max);
  if (!contribution) return lose(member, words(contribution.error()));
  const int rank = contribution->rank;
  if (!roster.admitted(rank)) return lose(member, fmt::format("it spoke for rank {}, who is not here", rank));
  if (auto done = roster.contribute(rank, *std::move(contribution), system.now_ns()); !done)
    fail(std::move(done).error());
}

void BootstrapRoot::State::take_gone(Member& member, const Bytes& body) {
  const auto gone = bootstrap::read_gone(body);
  if (!gone) return lose(member, words(gone.error()));
  // One who was taken in by the root has gone nowhere.
  if (roster.admitted(gone->rank) && tree.parent(gone->rank) == gone->by)
    lose_rank(gone->rank, gone->reason, gone->left);
}

void BootstrapRoot::State::take_confirmation(Member& member, const Bytes& body) {
  const auto confirmation = bootstrap::read_confirmation(body);
  if (!confirmation) return lose(member, words(confirmation.error()));
  member.confirmed = confirmation->round + 1;
  member.refused = confirmation->refused;
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
  // Those who come later are told as well.
  const std::int64_t now = system.now_ns();
  const std::int64_t since = roster.ranks() > 0 ? roster.waiting_since_ns() : now;
  end_ns = std::max(since + limits.init_ms * ms, now) + farewell_limit_ns;
  // A rank of this very process comes last: it may end the process, and then the others would not hear why.
  for (const bool here : {false, true})
    for (Member& member : members)
      if (member.wire.socket() && member.here == here) tell(member, *failure);
  // The others hear it from those above them.
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

/// With all ranks told or lost there may be one whose connection broke before it heard, and who comes again at once.
void BootstrapRoot::State::end_soon_if_all_told() {
  if (failure && roster.ranks() > 0 && static_cast<int>(told_ranks.size()) >= roster.ranks())
    end_ns = std::min(end_ns, system.now_ns() + farewell_limit_ns);
}

void BootstrapRoot::State::publish_complete_rounds() {
  if (failure || !roster.round_complete()) return;
  // Everybody is inside, and knows it: nobody else has any business here.
  acceptor.close();
  ++rounds;
  const auto gathered = frame(FrameKind::gathered, roster.take_gathered());
  for (Member& member : members) {
    if (member.state != Member::State::seated || member.told) continue;
    member.wire.queue(gathered);
    (void)member.wire.flush();
  }
}

/// Once, when all have the first answer, and with it the numbers of those below.
void BootstrapRoot::State::report_start() {
  if (start_reported || rounds == 0) return;
  std::uint64_t refused = refused_below + acceptor.refusals().count();
  for (const Member& member : members) {
    if (member.state == Member::State::seated && !member.told && member.confirmed == 0) return;
    refused += member.refused;
  }
  start_reported = true;
  if (log.info)
    log.info(
        fmt::format("init: {} ranks met in a tree of depth {}, at most {} below one; the root had at most {} sockets",
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
  auto shared_listener = bootstrap::SharedListener::open(system, at);
  if (!shared_listener) return std::move(shared_listener).error();
  return open(system, *shared_listener, secret, limits, std::move(log));
}

Result<std::unique_ptr<BootstrapRoot>> BootstrapRoot::open(
    System& system, const std::shared_ptr<bootstrap::SharedListener>& shared_listener, const Secret& secret,
    const BootstrapLimits& limits, BootstrapLog log) {
  auto registration = bootstrap::SharedListener::enter(shared_listener, secret);
  if (!registration) return std::move(registration).error();
  return std::unique_ptr<BootstrapRoot>(
      new BootstrapRoot(std::make_unique<State>(system, *registration, secret, limits, std::move(log))));
}

BootstrapRoot::BootstrapRoot(std::unique_ptr<State> state) : state_(std::move(state)) {}
BootstrapRoot::~BootstrapRoot() = default;
SocketAddress BootstrapRoot::address() const {
  return state_->at;
}

bool BootstrapRoot::is_of(const Secret& secret) const {
  return equal_in_constant_time(state_->secret, secret);
}

void BootstrapRoot::advise(const std::string& advice) {
  state_->roster.advise(advice);
}

bool BootstrapRoot::advance() {
  State& state = *state_;
  state.let_in();
  state.serve_members();
  state.give_places();
  state.publish_complete_rounds();
  state.report_start();
  state.keep_limits();
  std::erase_if(state.members, [](const Member& member) { return !member.wire.socket(); });
  awaited_.store(std::ranges::any_of(state.members, [](const Member& member) { return !member.here; }),
                 std::memory_order_relaxed);
  return !state.finished();
}

std::int64_t BootstrapRoot::poll_set(std::vector<PollItem>& items) {
  const State& state = *state_;
  std::int64_t wake = state.acceptor.poll_set(items, state.accepting());
  const auto not_later = [&wake](std::int64_t then) { wake = std::min(wake, then); };
  for (const Member& member : state.members) {
    items.push_back(member.wire.interest());
    if (member.told || member.state == Member::State::waiting) not_later(member.deadline_ns);
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
