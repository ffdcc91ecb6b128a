#include "net/connector.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t lacks_ns = 1'000 * ms;  // for descriptors that the program is about to close
constexpr std::int64_t try_ns = 1'000 * ms;
constexpr std::int64_t patient_ns = 2'000 * ms;  // added for a peer that has answered: a busy peer is slow to greet
constexpr std::int64_t unanswered_ns = 10'000 * ms;
constexpr std::int64_t pause_ns = 20 * ms;  // before all addresses are tried again

}  // namespace

Connector::Connector(System& system, std::vector<SocketAddress> addresses, const Greeting& greeting,
                     const ConnectionKey& key, std::int64_t limit_ns)
    : system_(system),
      addresses_(std::move(addresses)),
      greeting_(greeting),
      key_(key),
      give_up_ns_(system.now_ns() + limit_ns),
      give_up_unanswered_ns_(system.now_ns() + std::min(limit_ns, unanswered_ns)),
      met_(addresses_.size(), "not tried") {}

Result<void> Connector::begin() {
  const Bytes greeting = write_greeting(greeting_);
  secret_ = TUTTI_TRY(key_.for_greeting(greeting));
  side_ = TUTTI_TRY(handshake::RankSide::begin(greeting_.from, secret_));
  auto socket = TUTTI_TRY(system_.connect(addresses_[at_]));
  lacks_until_ns_ = 0;
  wire_.emplace(system_, std::move(socket));
  wire_->queue(greeting);
  wire_->queue(side_->hello());
  state_ = State::challenge;
  until_ns_ = std::min(system_.now_ns() + try_ns, give_up_ns_);
  return {};
}

void Connector::try_next(const std::string& why) {
  met_[at_] = why;
  wire_.reset();
  state_ = State::pause;
  at_ = (at_ + 1) % addresses_.size();
  until_ns_ = at_ == 0 ? system_.now_ns() + pause_ns : 0;
}

Result<std::optional<Socket>> Connector::advance() {
  if (addresses_.empty()) return Error{.code = Code::remote, .what = "it sent no address"};
  const std::int64_t now = system_.now_ns();
  if (now >= give_up_ns_ || (!answered_ && now >= give_up_unanswered_ns_)) {
    std::string tried;
    for (std::size_t i = 0; i < addresses_.size(); ++i)
      tried += fmt::format("{}{} port {}: {}", i == 0 ? "" : "; ", addresses_[i].host, addresses_[i].port, met_[i]);
    return Error{.code = Code::timeout, .what = "cannot be reached: " + tried};
  }
  if (state_ == State::pause) {
    if (now < until_ns_) return std::optional<Socket>{};
    if (auto begun = begin(); !begun) {
      if (begun.error().lacks_descriptor()) {
        if (lacks_until_ns_ == 0) lacks_until_ns_ = now + lacks_ns;
        if (now >= lacks_until_ns_) return std::move(begun).error();
      }
      try_next(begun.error().text());
      return std::optional<Socket>{};
    }
  } else if (gives_up(now)) {
    try_next("no answer");
    return std::optional<Socket>{};
  }
  auto connected = step();
  if (connected) return connected;
  // the other end has a different secret: permanent
  if (connected.error().code == Code::invalid_usage) return connected;
  // A busy listener closes connections that it cannot serve.
  answered_ = answered_ || connected.error().code == Code::remote || connected.error().sys_errno == ECONNRESET;
  try_next(connected.error().text());
  return std::optional<Socket>{};
}

bool Connector::gives_up(std::int64_t now_ns) {
  if (now_ns < until_ns_ || state_ == State::welcome) return false;
  const bool answers = static_cast<bool>(system_.peer_address(wire_->socket()));
  answered_ = answered_ || answers;
  return now_ns >= until_ns_ + patient_ns || !answers;
}

/// Advances this try as far as possible. An error ends the try.
Result<std::optional<Socket>> Connector::step() {
  TUTTI_TRY(wire_->flush());
  if (state_ == State::challenge) {
    auto challenge = TUTTI_TRY(wire_->take(handshake::challenge_bytes));
    if (!challenge) return std::optional<Socket>{};
    wire_->queue(TUTTI_TRY(side_->prove(secret_, *challenge)));
    state_ = State::welcome;
    answered_ = true;
    TUTTI_TRY(wire_->flush());
  }
  auto welcome = TUTTI_TRY(wire_->take(welcome_bytes));
  if (!welcome) return std::optional<Socket>{};
  if (ByteReader(*welcome).number<std::uint64_t>() != welcome_value)
    return Error{.code = Code::remote, .what = "the process at this address is not tutti"};
  return std::optional<Socket>(std::move(*wire_).take_socket());
}

std::int64_t Connector::poll_set(std::vector<PollItem>& items) const {
  if (wire_) items.push_back(wire_->interest());
  constexpr std::int64_t look_ns = 10 * ms;
  if (state_ == State::pause) return std::min(std::max<std::int64_t>(until_ns_, 1), give_up_ns_);
  const std::int64_t now = system_.now_ns();
  return std::min(std::max(until_ns_, now + look_ns), give_up_ns_);
}

}  // namespace tutti
