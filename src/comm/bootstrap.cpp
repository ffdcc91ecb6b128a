// A rank's side of the bootstrap.
#include "comm/bootstrap.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/host.h"
#include "comm/bootstrap_messages.h"
#include "comm/digest.h"
#include "comm/handshake.h"
#include "comm/wire.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t retry_first_ns = 10 * ms;
constexpr std::int64_t retry_longest_ns = 250 * ms;
constexpr std::int64_t try_ms = 1'000;  ///< of a connection, where another address may do better
/// The root's words come when its limit has passed; ours passes a little later, so that they are heard.
constexpr std::int64_t grace_ns = 2'000 * ms;

/// The root may be there a little later; a machine without descriptors or memory will not get better by asking again.
bool may_pass(const Error& error) {
  switch (error.sys_errno) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EAGAIN: return true;
    default: return false;
  }
}

/// Of a root with several addresses some may mean nothing here: another interface's, another family's.
bool may_pass_elsewhere(const Error& error) {
  return error.sys_errno != EMFILE && error.sys_errno != ENFILE && error.sys_errno != ENOBUFS &&
         error.sys_errno != ENOMEM;
}

}  // namespace

struct Bootstrap::State {
  enum class Phase {
    away,      ///< no connection; the next try is at next_try_ns
    greeting,  ///< hello on its way, challenge awaited
    proving,   ///< proof and join on their way, welcome awaited
    joined,
  };

  State(System& system_in, const UniqueId& id_in, Who who_in, const BootstrapLimits& limits_in)
      : system(system_in), id(id_in), who(std::move(who_in)), limits(limits_in), wire(system_in, Socket()) {}
  ~State() { wipe(id.secret); }

  Result<void> advance();
  Result<void> call_root();
  void call_again(std::string why);
  Result<void> greet();
  Result<void> await_welcome();
  Result<void> listen();
  Result<void> obey(const Frame& frame);
  void contribute() { wire.queue(frame(FrameKind::contribute, bootstrap::write_contribution(round, mine))); }
  void wait_from_now() { limit_ns = system.now_ns() + limits.init_ms * ms + grace_ns; }
  Error late() const;

  System& system;
  UniqueId id;
  Who who;
  BootstrapLimits limits;
  Wire wire;
  Phase phase = Phase::away;
  handshake::RankSide handshake = {};
  std::string trouble = "not tried yet";  ///< why the last try did not succeed
  std::size_t calls = 0;                  ///< so far: each goes to the root's next address
  std::int64_t next_try_ns = 0;
  std::int64_t retry_ns = retry_first_ns;
  std::int64_t call_limit_ns = 0;  ///< of the connection, until the challenge is here
  std::int64_t limit_ns = 0;       ///< of the exchange
  bool exchanging = false;
  std::uint32_t round = 0;
  Blob mine;
  std::vector<Blob> gathered;
  std::optional<Error> failure;
};

Result<void> Bootstrap::State::call_root() {
  auto side = handshake::RankSide::begin(who.rank);
  if (!side) return std::move(side).error();
  handshake = *std::move(side);
  auto socket = system.connect(id.candidate(calls++));
  if (!socket && !may_pass(socket.error()) && (id.also.empty() || !may_pass_elsewhere(socket.error())))
    return std::move(socket).error();
  if (!socket) {
    call_again(socket.error().text());
    return {};
  }
  wire = Wire(system, *std::move(socket));
  wire.queue(handshake.hello());
  phase = Phase::greeting;
  const std::int64_t patience_ms = id.also.empty() ? limits.handshake_ms : std::min(limits.handshake_ms, try_ms);
  call_limit_ns = system.now_ns() + patience_ms * ms;
  return {};
}

void Bootstrap::State::call_again(std::string why) {
  trouble = std::move(why);
  wire = Wire(system, Socket());
  phase = Phase::away;
  // Ranks that were refused together should not all come back together.
  next_try_ns = system.now_ns() + retry_ns + who.rank % 16 * ms;
  retry_ns = std::min(2 * retry_ns, retry_longest_ns);
}

Result<void> Bootstrap::State::greet() {
  const auto sent = wire.flush();
  auto challenge = wire.take(handshake::challenge_bytes);
  if (!sent || !challenge) {
    call_again((sent ? challenge.error() : sent.error()).text());
    return {};
  }
  if (*sent) {
    // On one host a port where nobody listens may be given to the caller himself, who then hears his own words.
    const auto here = system.address(wire.socket());
    const auto there = system.peer_address(wire.socket());
    if (here && there && *here == *there) {
      call_again("nobody listens");
      return {};
    }
  }
  if (!*challenge) {
    if (system.now_ns() >= call_limit_ns) call_again("it accepts connections, but does not answer");
    return {};
  }
  auto proof = handshake.prove(id.secret, **challenge);
  if (!proof && calls <= id.also.size()) {  // another host may have this address too
    call_again(proof.error().text());
    return {};
  }
  if (!proof) return std::move(proof).error().during(fmt::format("greet the root at {}", id.where()));
  wire.queue(*std::move(proof));
  wire.queue(frame(FrameKind::join, bootstrap::write_join(who)));
  phase = Phase::proving;
  return await_welcome();
}

Result<void> Bootstrap::State::await_welcome() {
  const auto sent = wire.flush();
  auto answer = wire.take_frame(bootstrap::failure_bytes_max);
  if (!answer || (!sent && !*answer)) {
    call_again((answer ? sent.error() : answer.error()).text());
    return {};
  }
  if (!*answer) return {};
  if ((*answer)->kind != FrameKind::welcome) return obey(**answer);
  phase = Phase::joined;
  wait_from_now();
  if (exchanging) contribute();
  return listen();
}

Result<void> Bootstrap::State::listen() {
  const auto sent = wire.flush();
  const std::uint32_t before = round;
  // A failure that comes after an exchange was complete is the next one's.
  while (round == before) {
    // The root's last words may be here even when nothing can be sent to it any more.
    auto next = wire.take_frame(
        std::max(bootstrap::gathered_bytes_max(who.ranks, limits.blob_bytes_max), bootstrap::failure_bytes_max));
    if (!next || (!sent && !*next)) {
      const Error& why = next ? sent.error() : next.error();
      return Error{.code = Code::remote, .what = "the root of the start was lost: " + why.text()};
    }
    if (!*next) return {};
    if (auto done = obey(**next); !done) return done;
  }
  return {};
}

Result<void> Bootstrap::State::obey(const Frame& frame) {
  if (frame.kind == FrameKind::failure) return bootstrap::read_failure(frame.body);
  if (frame.kind != FrameKind::gathered || !exchanging)
    return Error{.code = Code::remote, .what = "the root of the start sent a frame of a wrong kind"};
  auto blobs = bootstrap::read_gathered(frame.body, round, who.ranks, limits.blob_bytes_max);
  if (!blobs) return std::move(blobs).error();
  gathered = *std::move(blobs);
  exchanging = false;
  ++round;
  return {};
}

Error Bootstrap::State::late() const {
  const double seconds = static_cast<double>(limits.init_ms) * 1e-3;
  const std::string root = fmt::format("the root at {}", id.where());
  if (phase == Phase::joined)
    return Error{.code = Code::timeout, .what = fmt::format("{} has said nothing for {:.3g} s", root, seconds)};
  return Error{.code = Code::timeout,
               .what = fmt::format("rank {} of {} did not get through to {} for {:.3g} s, last: {}. It may not have "
                                   "started, or have all its ranks already",
                                   who.rank, who.ranks, root, seconds, trouble)};
}

Result<void> Bootstrap::State::advance() {
  if (phase == Phase::away && system.now_ns() >= next_try_ns)
    if (auto called = call_root(); !called) return called;
  Result<void> done;
  switch (phase) {
    case Phase::away: break;
    case Phase::greeting: done = greet(); break;
    case Phase::proving: done = await_welcome(); break;
    case Phase::joined: done = listen(); break;
  }
  if (!done) return done;
  if (exchanging && system.now_ns() >= limit_ns) return late();
  return {};
}

Bootstrap::Bootstrap(System& system, const UniqueId& id, Who who, const BootstrapLimits& limits)
    : state_(std::make_unique<State>(system, id, std::move(who), limits)) {
  if (state_->who.process.empty()) state_->who.process = this_process();
  state_->who.limit_ms = std::min(limits.init_ms, bootstrap::limit_ms_max);
}

Bootstrap::~Bootstrap() {
  if (!state_ || state_->phase != State::Phase::joined) return;
  state_->wire.queue(frame(FrameKind::bye, {}));
  (void)state_->wire.flush();
}

void Bootstrap::exchange(Blob mine) {
  assert(!state_->exchanging);
  assert(mine.size() <= state_->limits.blob_bytes_max);
  state_->mine = std::move(mine);
  state_->exchanging = true;
  state_->wait_from_now();
  if (state_->phase == State::Phase::joined) state_->contribute();
}

Result<bool> Bootstrap::advance() {
  if (!state_->failure) {
    if (auto done = state_->advance(); !done) {
      state_->failure = std::move(done).error();
      state_->wire = Wire(state_->system, Socket());
      state_->phase = State::Phase::away;
    }
  }
  if (state_->failure) return *state_->failure;
  return !state_->exchanging;
}

const std::vector<Blob>& Bootstrap::gathered() const {
  return state_->gathered;
}

std::int64_t Bootstrap::interests(std::vector<PollItem>& items) const {
  const State& state = *state_;
  std::int64_t wake = state.system.now_ns() + 3'600'000 * ms;
  if (state.failure) return state.system.now_ns();
  if (state.exchanging) wake = std::min(wake, state.limit_ns);
  if (state.phase == State::Phase::greeting) wake = std::min(wake, state.call_limit_ns);
  if (state.phase == State::Phase::away)
    wake = std::min(wake, state.next_try_ns);
  else
    items.push_back(state.wire.interest());
  return wake;
}

}  // namespace tutti
