// A rank's side of the bootstrap.
#include "bootstrap/bootstrap.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "base/host.h"
#include "bootstrap/bootstrap_branch.h"
#include "bootstrap/bootstrap_call.h"
#include "bootstrap/bootstrap_messages.h"
#include "bootstrap/exchange_round.h"
#include "net/wire.h"

namespace tutti {
namespace {

using bootstrap::Branch;
using bootstrap::Call;
using bootstrap::ExchangeRound;
using bootstrap::Welcome;

constexpr std::int64_t ms = 1'000'000;
constexpr const char* root_lost = "the process that made the id of the start (as a rule that of rank 0) was lost: ";
/// The root sends its message when its limit has passed. This rank's limit passes a little later, so that the message
/// arrives: on a busy machine the root hears of this rank, and comes to its own limit, some tenths of a second late.
std::int64_t grace_ns(const BootstrapLimits& limits) {
  return std::clamp(limits.init_ms * ms / 10, 1'000 * ms, 2'000 * ms);
}
/// Limit for a parent to admit this rank; afterwards the root takes this rank as its own child.
constexpr std::int64_t parent_limit_ms = 2'000;
constexpr int parent_tries = 3;

}  // namespace

struct Bootstrap::State {
  enum class Phase {
    calling,  ///< the root, to get a place in the tree
    moving,   ///< to its parent; the root still holds the connection
    joined,
  };

  State(System& system_in, const UniqueId& id_in, Who who_in, const BootstrapLimits& limits_in)
      : system(system_in),
        id(id_in),
        who(std::move(who_in)),
        limits(limits_in),
        call(std::in_place, system_in, id, who, limits_in.handshake_ms),
        root(system_in, Socket()),
        up(system_in, Socket()) {}
  Result<void> advance();
  Result<void> call_root();
  void take_place(Welcome welcome);
  void open_branch(Wire& wire);
  Result<void> move();
  Result<void> listen_to_root();
  void report_unreachable(const std::string& why);
  void join_below(Wire wire);
  Result<void> listen();
  Result<void> look();
  void send_rising();
  Result<void> obey(const Frame& frame);
  void confirm();
  void give_up(const Error& error);
  void say_goodbye();
  Error lost(const std::string& reason) const;
  Error late() const;
  void contribute() { up.queue(round.contribution(who.rank)); }
  void wait_from_now() {
    std::int64_t limit_ns = system.now_ns() + limits.init_ms * ms;
    if (limits.deadline_ns != 0) limit_ns = std::min(limit_ns, limits.deadline_ns);
    round.set_limit(limit_ns + grace_ns(limits));
  }

  System& system;
  UniqueId id;
  Who who;
  BootstrapLimits limits;
  Phase phase = Phase::calling;
  std::optional<Call> call;  ///< to the root, then to the parent
  Wire root;                 ///< until the parent has admitted this rank
  bool adopted = false;      ///< asked the root to become its parent
  std::int64_t parent_limit_ns = 0;
  Welcome place = {};
  UniqueId parent = {};  ///< address to call
  Wire up;               ///< to the parent, or to the root
  std::unique_ptr<Branch> branch;
  ExchangeRound round;
  std::optional<Error> failure;
};

Result<void> Bootstrap::State::call_root() {
  auto welcome = TUTTI_TRY(call->advance());
  if (!welcome) return {};
  place = *std::move(welcome);
  Wire wire = call->take_wire();
  call.reset();
  if (place.listen) open_branch(wire);
  if (place.parent < 0) {
    join_below(std::move(wire));
    return listen();
  }
  root = std::move(wire);
  parent = {.root = place.at, .secret = id.secret};
  call.emplace(system, parent, who, limits.handshake_ms);
  parent_limit_ns = system.now_ns() + std::min(limits.handshake_ms, parent_limit_ms) * ms;
  phase = Phase::moving;
  return move();
}

/// Listens where the root reaches this rank: other ranks reach it there too, or the root takes them. A rank that cannot
/// listen says so and gets no children.
void Bootstrap::State::open_branch(Wire& wire) {
  SocketAddress at;
  if (const auto here = system.address(wire.socket())) {
    auto opened = Branch::open(system, here->host, id.secret, who.rank, who.ranks, limits.blob_bytes_max);
    if (opened) {
      branch = *std::move(opened);
      at = branch->address();
    }
  }
  wire.queue(frame(FrameKind::listens, bootstrap::write_listens(at)));
}

void Bootstrap::State::join_below(Wire wire) {
  up = std::move(wire);
  phase = Phase::joined;
  wait_from_now();
  if (round.under_way()) contribute();
}

Result<void> Bootstrap::State::move() {
  if (auto heard = listen_to_root(); !heard || phase == Phase::joined) return heard;
  if (adopted) return {};
  auto welcome = call->advance();
  if (welcome && !*welcome && call->failed_tries() < parent_tries && system.now_ns() < parent_limit_ns) return {};
  if (!welcome || !*welcome) {
    report_unreachable(welcome ? call->trouble() : welcome.error().text());
    return {};
  }
  join_below(call->take_wire());
  call.reset();
  root.queue(frame(FrameKind::settled, {}));
  return listen();
}

/// While moving: receives a failure, or the place below the root that this rank asked for.
Result<void> Bootstrap::State::listen_to_root() {
  const auto sent = root.flush();
  auto next = root.take_frame(bootstrap::notice_bytes_max);
  if (!next || (!sent && !*next)) {
    const Error& why = next ? sent.error() : next.error();
    return remote_error(root_lost + why.text());
  }
  if (!*next) return {};
  if ((*next)->kind == FrameKind::failure) return bootstrap::read_failure((*next)->body);
  if ((*next)->kind != FrameKind::welcome || !adopted)
    return remote_error("the root of the start sent a frame of the wrong kind");
  place = {};
  call.reset();
  join_below(std::exchange(root, Wire(system, Socket())));
  return listen();
}

/// Keeps the connection to the parent until the root has answered: closing it would look like a lost rank.
void Bootstrap::State::report_unreachable(const std::string& why) {
  root.queue(frame(FrameKind::unreachable, serialized(std::string_view(why).substr(0, bootstrap::text_bytes_max))));
  (void)root.flush();
  adopted = true;
}

void Bootstrap::State::send_rising() {
  if (!branch) return;
  for (auto& frame : branch->take_rising()) up.queue(std::move(frame));
}

/// Before this rank has contributed, only a failure can arrive.
Result<void> Bootstrap::State::look() {
  if (branch) branch->advance();
  send_rising();
  const auto sent = up.flush();
  auto next = up.take_frame(bootstrap::notice_bytes_max);
  if (!next || (!sent && !*next)) return lost((next ? sent.error() : next.error()).text());
  if (!*next) return {};
  if ((*next)->kind == FrameKind::gathered)
    return remote_error("the root of the start sent an answer before it was asked");
  return obey(**next);
}

Result<void> Bootstrap::State::listen() {
  if (root.socket() && (!root.flush() || !root.interest().want_write)) root = Wire(system, Socket());
  send_rising();
  const auto sent = up.flush();
  // A failure that arrives after an exchange is complete belongs to the next exchange.
  while (round.awaits_answer()) {
    // The last frames from the parent may have arrived even if nothing can be sent to it any more.
    auto next = up.take_frame(
        std::max(bootstrap::gathered_bytes_max(who.ranks, limits.blob_bytes_max), bootstrap::notice_bytes_max));
    if (!next || (!sent && !*next)) return lost((next ? sent.error() : next.error()).text());
    if (!*next) return {};
    TUTTI_TRY(obey(**next));
  }
  confirm();
  return {};
}

Result<void> Bootstrap::State::obey(const Frame& frame) {
  if (frame.kind == FrameKind::failure) return bootstrap::read_failure(frame.body);
  if (frame.kind == FrameKind::bye) return lost("it left");
  if (frame.kind != FrameKind::gathered) return remote_error("the root of the start sent a frame of the wrong kind");
  TUTTI_TRY(round.take_answer(frame.body, who.ranks, limits.blob_bytes_max));
  if (branch) {
    branch->stop_accepting();
    branch->hand_down(tutti::frame(frame.kind, frame.body));
  }
  return {};
}

/// An exchange is complete for a rank when it is complete for all ranks below it. The rank may then leave: no rank
/// waits for frames that this rank would have to pass on.
void Bootstrap::State::confirm() {
  if (!round.answered() || (branch && !branch->confirmed(round.number()))) return;
  up.queue(frame(FrameKind::confirm,
                 bootstrap::write_confirmation({.round = round.number(), .refused = branch ? branch->refused() : 0})));
  (void)up.flush();
  round.complete();
}

Error Bootstrap::State::lost(const std::string& reason) const {
  if (place.parent < 0) return remote_error(root_lost + reason);
  return remote_error(fmt::format("rank {} ({}) was lost at the start: {}", place.parent, place.process, reason),
                      place.parent);
}

Error Bootstrap::State::late() const {
  const double seconds = static_cast<double>(limits.init_ms) * 1e-3;
  const std::string where = fmt::format("the root at {}", id.where());
  const auto timeout = [](std::string what) { return Error{.code = Code::timeout, .what = std::move(what)}; };
  if (round.answered())
    return timeout(fmt::format("{} has not confirmed exchange {} of the start for {:.3g} s",
                               branch->awaited(round.number()), round.number() + 1, seconds));
  if (phase == Phase::joined) return timeout(fmt::format("{} has sent nothing for {:.3g} s", where, seconds));
  if (phase == Phase::moving)
    return timeout(fmt::format("{} found no place for rank {} in {:.3g} s", where, who.rank, seconds));
  return timeout(
      fmt::format("rank {} of {} could not connect to {} for {:.3g} s, last: {}. The root may not have "
                  "started, or may have all its ranks already",
                  who.rank, who.ranks, where, seconds, call->trouble()));
}

Result<void> Bootstrap::State::advance() {
  if (branch) branch->advance();
  Result<void> done;
  switch (phase) {
    case Phase::calling: done = call_root(); break;
    case Phase::moving: done = move(); break;
    case Phase::joined: done = listen(); break;
  }
  if (!done) return done;
  if (round.under_way() && system.now_ns() >= round.limit_ns()) return late();
  return {};
}

/// Tells the ranks below why. Their connections stay open as long as this object, so that the message is not cut off.
void Bootstrap::State::give_up(const Error& error) {
  if (branch) {
    branch->stop_accepting();
    branch->hand_down(frame(FrameKind::failure, bootstrap::write_failure(error)));
  }
  failure = error;
  call.reset();
  root = Wire(system, Socket());
  up = Wire(system, Socket());
}

void Bootstrap::State::say_goodbye() {
  if (failure) return;
  const auto bye = frame(FrameKind::bye, {});
  if (branch) branch->hand_down(bye);
  for (Wire* const wire : {&root, &up}) {
    if (!wire->socket()) continue;
    wire->queue(bye);
    (void)wire->flush();
  }
}

Bootstrap::Bootstrap(System& system, const UniqueId& id, Who who, const BootstrapLimits& limits) {
  if (who.process.empty()) who.process = this_process();
  who.limit_ms = std::min(limits.init_ms, bootstrap::limit_ms_max);
  state_ = std::make_unique<State>(system, id, std::move(who), limits);
}

Bootstrap::~Bootstrap() {
  if (state_) state_->say_goodbye();
}

bool Bootstrap::met() const {
  return state_->phase != State::Phase::calling;
}

bool Bootstrap::placed() const {
  return state_->phase == State::Phase::joined && !state_->failure;
}

void Bootstrap::exchange(Blob mine) {
  assert(!state_->round.under_way());
  assert(mine.size() <= state_->limits.blob_bytes_max);
  state_->round.begin(std::move(mine));
  state_->wait_from_now();
  if (state_->phase == State::Phase::joined) state_->contribute();
}

Result<bool> Bootstrap::advance() {
  if (!state_->failure)
    if (auto done = state_->advance(); !done) state_->give_up(done.error());
  if (state_->failure) return *state_->failure;
  return !state_->round.under_way();
}

Result<void> Bootstrap::look() {
  assert(!state_->round.under_way() && state_->phase == State::Phase::joined);
  if (!state_->failure)
    if (auto well = state_->look(); !well) state_->give_up(well.error());
  if (state_->failure) return *state_->failure;
  return {};
}

void Bootstrap::fail(const Error& error) {
  assert(state_->phase == State::Phase::joined);
  state_->up.queue(frame(FrameKind::failure, bootstrap::write_failure(error)));
  (void)state_->up.flush();
}

const std::vector<Blob>& Bootstrap::gathered() const {
  return state_->round.gathered();
}

std::int64_t Bootstrap::poll_set(std::vector<PollItem>& items) const {
  const State& state = *state_;
  if (state.failure) return state.system.now_ns();
  std::int64_t wake = state.system.now_ns() + 3'600'000 * ms;
  if (state.round.under_way()) wake = std::min(wake, state.round.limit_ns());
  if (state.call && !state.adopted) wake = std::min(wake, state.call->poll_set(items));
  if (state.phase == State::Phase::moving && !state.adopted) wake = std::min(wake, state.parent_limit_ns);
  if (state.branch) wake = std::min(wake, state.branch->poll_set(items));
  if (state.root.socket()) items.push_back(state.root.interest());
  if (state.up.socket()) {
    PollItem item = state.up.interest();
    item.want_read = state.round.awaits_answer();  // otherwise nothing is read
    if (item.want_read || item.want_write) items.push_back(item);
  }
  return wake;
}

}  // namespace tutti
