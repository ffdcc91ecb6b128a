#include "bootstrap/bootstrap_call.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t gone_after_ns = 1'000 * ms;
constexpr std::int64_t no_port_after_ns = 2'000 * ms;
constexpr std::int64_t try_ms = 1'000;  ///< limit of one connection when there is another address to try

/// Errors that may pass: the other end may listen a little later. Asking again does not help a machine without
/// descriptors or memory.
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

/// Some of several addresses may be unusable here: those of another interface or another address family.
bool may_pass_elsewhere(const Error& error) {
  return error.sys_errno != EMFILE && error.sys_errno != ENFILE && error.sys_errno != ENOBUFS &&
         error.sys_errno != ENOMEM;
}

}  // namespace

Call::Call(System& system, const UniqueId& id, const Bootstrap::Who& who, std::int64_t handshake_ms)
    : system_(system),
      id_(id),
      who_(who),
      handshake_ms_(handshake_ms),
      wire_(system, Socket()),
      failed_(who.rank, 1 + id.also.size()) {}

Result<void> Call::connect() {
  handshake_ = TUTTI_TRY(handshake::RankSide::begin(who_.rank, id_.secret));
  auto socket = system_.connect(id_.candidate(calls_++));
  if (!socket && !may_pass(socket.error()) && (id_.also.empty() || !may_pass_elsewhere(socket.error())))
    return std::move(socket).error();
  if (!socket) {
    again(socket.error());
    return {};
  }
  wire_ = Wire(system_, *std::move(socket));
  wire_.queue(handshake_.hello());
  phase_ = Phase::greeting;
  limit_ns_ = system_.now_ns() + (id_.also.empty() ? handshake_ms_ : std::min(handshake_ms_, try_ms)) * ms;
  return {};
}

void Call::again(const Error& error) {
  const bool no_port = error.sys_errno == EADDRNOTAVAIL;
  again(error.text(), error.sys_errno == ECONNREFUSED ? Why::refused : no_port ? Why::no_port : Why::other);
}

void Call::again(std::string words, Why why) {
  failed_.add(std::move(words), why, system_.now_ns());
  wire_ = Wire(system_, Socket());
  phase_ = Phase::away;
}

Result<void> Call::greet() {
  const auto sent = wire_.flush();
  auto challenge = wire_.take(handshake::challenge_bytes);
  if (!sent || !challenge) {
    again(sent ? challenge.error() : sent.error());
    return {};
  }
  if (*sent) {
    // On one host, connecting to a port without a listener may get that very port as local port: the caller is then
    // connected to itself.
    const auto here = system_.address(wire_.socket());
    const auto there = system_.peer_address(wire_.socket());
    if (here && there && *here == *there) {
      again("nobody listens", Why::refused);
      return {};
    }
  }
  if (!*challenge) {
    if (system_.now_ns() >= limit_ns_) again(trouble());
    return {};
  }
  auto proof = handshake_.prove(id_.secret, **challenge);
  if (!proof) {
    wire_.queue(handshake::RankSide::refusal());
    (void)wire_.flush();  // best effort: this end is done with the connection
  }
  if (!proof && calls_ <= id_.also.size()) {  // another host may have this address too
    again(proof.error().text());
    return {};
  }
  if (!proof) {
    Error error = std::move(proof).error();
    if (!id_.root_may_come_later) error.what += ", or all ranks of this id are there already";
    return std::move(error).during(fmt::format("greet the root at {}", id_.where()));
  }
  wire_.queue(*std::move(proof));
  wire_.queue(excuse_ ? frame(FrameKind::excuse, *excuse_) : frame(FrameKind::join, write_join(who_)));
  phase_ = Phase::proving;
  return {};
}

Result<std::optional<Welcome>> Call::await_welcome() {
  const auto sent = wire_.flush();
  auto answer = wire_.take_frame(notice_bytes_max);
  if (!answer || (!sent && !*answer)) {
    again(answer ? sent.error() : answer.error());
    return std::optional<Welcome>{};
  }
  if (!*answer) return std::optional<Welcome>{};
  if ((*answer)->kind == FrameKind::failure) return read_failure((*answer)->body);
  if ((*answer)->kind != FrameKind::welcome)
    return Error{.code = Code::remote, .what = "the root of the start sent a frame of the wrong kind"};
  return std::optional(TUTTI_TRY(read_welcome((*answer)->body)));
}

/// A try under way says more than the one before it.
std::string Call::trouble() const {
  switch (phase_) {
    case Phase::away: break;
    case Phase::greeting:
      return system_.peer_address(wire_.socket())
                 ? "it accepts connections, but does not answer: it is busy, or another program listens there"
                 : "it does not answer";
    case Phase::proving: return "it has answered, but not admitted this rank yet";
  }
  return failed_.last();
}

Result<std::optional<Welcome>> Call::advance() {
  auto welcome = step();
  if (welcome && !*welcome && phase_ == Phase::away)
    if (auto reason = hopeless()) return *std::move(reason);
  return welcome;
}

/// Why more tries would not help.
std::optional<Error> Call::hopeless() const {
  if (failed_.alike(Why::no_port, no_port_after_ns, system_.now_ns()))
    return Error{.code = Code::system,
                 .what = fmt::format("rank {} has no free port, or no address, for a connection to {}: "
                                     "net.ipv4.ip_local_port_range has too few ports, other programs use them, or no "
                                     "interface has an address of that kind",
                                     who_.rank, id_.where())};
  if (!id_.root_may_come_later && failed_.alike(Why::refused, gone_after_ns, system_.now_ns()))
    return Error{.code = Code::remote,
                 .what = fmt::format("nobody listens any more for rank {} at {}: the process that made the id (as a "
                                     "rule that of rank 0) has ended or dropped it, the start has failed, or all its "
                                     "ranks are there already",
                                     who_.rank, id_.where())};
  return std::nullopt;
}

Result<std::optional<Welcome>> Call::step() {
  if (phase_ == Phase::away && system_.now_ns() >= failed_.next_ns()) TUTTI_TRY(connect());
  if (phase_ == Phase::greeting) TUTTI_TRY(greet());
  if (phase_ == Phase::proving) return await_welcome();
  return std::optional<Welcome>{};
}

std::int64_t Call::poll_set(std::vector<PollItem>& items) const {
  if (phase_ == Phase::away) return failed_.next_ns();
  items.push_back(wire_.interest());
  return phase_ == Phase::greeting ? limit_ns_ : system_.now_ns() + 3'600'000 * ms;
}

}  // namespace tutti::bootstrap
