#include "comm/transports/rdma/upgrade.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/enumeration.h"
#include "base/fixed_text.h"
#include "base/random.h"

namespace tutti {
namespace {

constexpr std::uint64_t magic = 0x6d64'7269'7474'7574;  // "tuttirdm"
constexpr std::uint32_t version = 4;
constexpr std::int64_t probe_limit_ns = 10'000'000'000;
constexpr std::int64_t look_ns = 1'000'000;
constexpr std::string_view connecting = "connects", listening = "listens", calling = "calls by rdma_cm";

void write_address(ByteWriter& writer, const verbs::LinkAddress& at) {
  writer.number(static_cast<std::int32_t>(at.shape.slots));
  writer.number(static_cast<std::int32_t>(at.shape.queue_pairs));
  writer.number(static_cast<std::uint32_t>(at.port.link_layer));
  writer.number(static_cast<std::uint64_t>(at.shape.slot_bytes));
  writer.number(std::uint32_t{at.port.lid});
  writer.number(at.port.mtu);
  writer.number(std::uint32_t{at.port.iwarp ? 1u : 0u});
  writer.raw(std::as_bytes(std::span(at.port.gid)));
  for (const verbs::QueueAddress& queue : at.queues) {
    writer.number(queue.number);
    writer.number(queue.psn);
  }
  writer.number(at.ring);
  writer.number(at.rkey);
}

Error out_of_turn() {
  return {.code = Code::remote, .what = "the agreement on RDMA failed: a frame out of turn"};
}

/// Nothing: of an unknown link layer.
std::optional<verbs::LinkAddress> read_address(ByteReader& reader) {
  verbs::LinkAddress at;
  at.shape.slots = reader.number<std::int32_t>();
  at.shape.queue_pairs = reader.number<std::int32_t>();
  const auto link_layer = enumerator<verbs::LinkLayer>(reader.number<std::uint32_t>());
  if (!link_layer) return std::nullopt;
  at.port.link_layer = *link_layer;
  at.shape.slot_bytes = reader.number<std::uint64_t>();
  at.port.lid = static_cast<std::uint16_t>(reader.number<std::uint32_t>());
  at.port.mtu = reader.number<std::int32_t>();
  at.port.iwarp = reader.number<std::uint32_t>() != 0;
  const auto gid = reader.raw(at.port.gid.size());
  if (gid.size() == at.port.gid.size()) std::ranges::copy(gid, std::as_writable_bytes(std::span(at.port.gid)).begin());
  for (verbs::QueueAddress& queue : at.queues) {
    queue.number = reader.number<std::uint32_t>();
    queue.psn = reader.number<std::uint32_t>();
  }
  at.ring = reader.number<std::uint64_t>();
  at.rkey = reader.number<std::uint32_t>();
  return at;
}

}  // namespace

Result<Bytes> RdmaFrame::write(const Secret& secret, std::string_view role) const {
  ByteWriter writer;
  writer.number(magic);
  writer.number(version);
  writer.number(static_cast<std::uint32_t>(kind));
  writer.number(std::uint32_t{refusal.empty() ? 0u : 1u});
  std::array<char, reason_bytes> reason{};
  put_text(reason, refusal);
  writer.raw(std::as_bytes(std::span(reason)));
  write_address(writer, at);
  writer.number(std::uint32_t{cm_port});
  writer.raw(nonce);
  auto code = TUTTI_TRY(hmac_of(secret, role, writer.bytes()));
  writer.raw(code);
  return std::move(writer).take();
}

Result<RdmaFrame> RdmaFrame::read(std::span<const std::byte> all, const Secret& secret, std::string_view role) {
  const auto wrong = [](std::string_view why) {
    return Error{.code = Code::remote, .what = fmt::format("the agreement on RDMA failed: {}", why)};
  };
  if (all.size() != bytes) return wrong("a frame of another length");
  const auto body = all.first(bytes - sizeof(Digest));
  const auto code = TUTTI_TRY(hmac_of(secret, role, body));
  if (!equal_in_constant_time(code, all.last(sizeof(Digest)))) return wrong("a frame without a valid code");
  ByteReader reader(body);
  if (reader.number<std::uint64_t>() != magic || reader.number<std::uint32_t>() != version)
    return wrong("the other end speaks another version");
  RdmaFrame frame;
  const auto kind = enumerator<Kind>(reader.number<std::uint32_t>());
  if (!kind) return wrong("a frame of an unknown kind");
  frame.kind = *kind;
  const bool refuses = reader.number<std::uint32_t>() != 0;
  std::array<char, reason_bytes> reason{};
  std::ranges::copy(reader.raw(reason_bytes), std::as_writable_bytes(std::span(reason)).begin());
  if (refuses) frame.refusal = "the peer: " + get_text(reason);
  auto at = read_address(reader);
  if (!at) return wrong("the other end's port has an unknown link layer");
  frame.at = *std::move(at);
  frame.cm_port = static_cast<std::uint16_t>(reader.number<std::uint32_t>());
  std::ranges::copy(reader.raw(frame.nonce.size()), frame.nonce.begin());
  return frame;
}

RdmaUpgrade::RdmaUpgrade(System& system, Socket socket, bool connects, const Secret& secret, Maker make,
                         std::int64_t limit_ns)
    : system_(system),
      wire_(system, std::move(socket)),
      connects_(connects),
      secret_(secret),
      make_(std::move(make)),
      give_up_ns_(system.now_ns() + limit_ns) {}

bool RdmaUpgrade::advance() {
  while (state_ != State::decided) {
    auto next = step();
    if (next && *next == state_) {
      if (system_.now_ns() < give_up_ns_) return false;
      next = Error{.code = Code::timeout, .what = "the agreement on RDMA failed: the other end does not answer"};
    }
    state_ = next ? *next : State::decided;
    if (!next) fail(std::move(next).error());
  }
  return true;
}

/// The next state, or the same one if there is something to wait for. Errors: the connection is of no use.
Result<RdmaUpgrade::State> RdmaUpgrade::step() {
  switch (state_) {
    case State::begin: return begin();
    case State::offer: return hear_offer();
    case State::join: return join();
    case State::peer_join: return hear_joined();
    case State::probe: return probe();
    case State::verdict: return hear_verdict();
    case State::say: return TUTTI_TRY(wire_.flush()) ? State::decided : State::say;
    case State::decided: break;
  }
  return State::decided;
}

/// What the other end has sent, or will send, of the agreement would be taken for data.
void RdmaUpgrade::fail(Error error) {
  agreed_ = false;
  why_ = error.text();
  failure_ = std::move(error);
}

Result<void> RdmaUpgrade::send(const RdmaFrame& frame) {
  auto bytes = TUTTI_TRY(frame.write(secret_, connects_ ? connecting : listening));
  wire_.queue(std::move(bytes));
  TUTTI_TRY(wire_.flush());
  return {};
}

Result<std::optional<RdmaFrame>> RdmaUpgrade::receive(RdmaFrame::Kind wanted) {
  TUTTI_TRY(wire_.flush());
  auto bytes = TUTTI_TRY(wire_.take(RdmaFrame::bytes));
  if (!bytes) return std::optional<RdmaFrame>();
  auto frame = TUTTI_TRY(RdmaFrame::read(*bytes, secret_, connects_ ? listening : connecting));
  if (frame.kind != wanted) return out_of_turn();
  return std::optional(std::move(frame));
}

Result<RdmaUpgrade::State> RdmaUpgrade::begin() {
  if (!connects_) return State::offer;
  RdmaFrame offer;
  auto link = make_();
  if (link) {
    link_ = *std::move(link);
    offer.at = link_->address();
  } else {
    offer.refusal = why_ = link.error().text();
  }
  TUTTI_TRY(send(offer));
  return link_ ? State::offer : State::say;
}

Result<RdmaUpgrade::State> RdmaUpgrade::hear_offer() {
  auto heard = TUTTI_TRY(receive(RdmaFrame::Kind::offer));
  if (!heard) return State::offer;
  const RdmaFrame& offer = *heard;
  if (!offer.refusal.empty()) {
    why_ = offer.refusal;
    return State::say;
  }
  if (!connects_) return answer(offer);
  awaits_joined_ = link_->iwarp();
  if (auto ready = link_->connect(offer.at); !ready) return give_verdict(ready.error().text());
  if (!link_->iwarp()) return begin_probe();
  if (auto called = call(offer); !called) return give_verdict(called.error().text());
  probe_until_ns_ = system_.now_ns() + probe_limit_ns;
  return State::join;
}

Result<void> RdmaUpgrade::call(const RdmaFrame& offer) {
  auto token = TUTTI_TRY(hmac_of(secret_, calling, offer.nonce));
  return link_->call({.address = offer.at.port.gid, .port = offer.cm_port}, token);
}

Result<RdmaUpgrade::State> RdmaUpgrade::join() {
  auto joined = link_->joined();
  const bool waits = joined && !*joined && system_.now_ns() < probe_until_ns_;
  if (waits) return connects_ ? Result<State>(State::join) : hear_that_peer_gave_up();
  std::string refusal = !joined ? joined.error().text() : *joined ? "" : "rdma_cm has not connected";
  if (!connects_) return tell_joined(std::move(refusal), State::verdict);
  return refusal.empty() ? State::peer_join : give_verdict(std::move(refusal));
}

Result<RdmaUpgrade::State> RdmaUpgrade::hear_that_peer_gave_up() {
  auto heard = TUTTI_TRY(receive(RdmaFrame::Kind::verdict));
  if (!heard) return State::join;
  if (heard->refusal.empty()) return out_of_turn();
  return tell_joined(heard->refusal, State::say);
}

Result<RdmaUpgrade::State> RdmaUpgrade::tell_joined(std::string refusal, State next) {
  why_ = refusal;
  TUTTI_TRY(send({.kind = RdmaFrame::Kind::joined, .refusal = std::move(refusal)}));
  return next;
}

Result<RdmaUpgrade::State> RdmaUpgrade::hear_joined() {
  auto heard = TUTTI_TRY(receive(RdmaFrame::Kind::joined));
  if (!heard) return State::peer_join;
  awaits_joined_ = false;
  if (!why_.empty()) return State::say;  // the verdict was given before
  return heard->refusal.empty() ? begin_probe() : give_verdict(heard->refusal);
}

Result<RdmaUpgrade::State> RdmaUpgrade::begin_probe() {
  if (auto probed = link_->probe(); !probed) return give_verdict(probed.error().text());
  probe_until_ns_ = system_.now_ns() + probe_limit_ns;
  return State::probe;
}

Result<RdmaUpgrade::State> RdmaUpgrade::give_verdict(std::string refusal) {
  agreed_ = refusal.empty();
  why_ = refusal;
  const RdmaFrame verdict{.kind = RdmaFrame::Kind::verdict, .refusal = std::move(refusal)};
  TUTTI_TRY(send(verdict));
  return awaits_joined_ ? State::peer_join : State::say;
}

Result<RdmaUpgrade::State> RdmaUpgrade::answer(const RdmaFrame& offer) {
  RdmaFrame own;
  if (auto made = make_answer(offer, own); !made) own.refusal = made.error().text();
  why_ = own.refusal;
  TUTTI_TRY(send(own));
  if (!own.refusal.empty()) return State::say;
  probe_until_ns_ = system_.now_ns() + probe_limit_ns;
  return link_->iwarp() ? State::join : State::verdict;
}

Result<void> RdmaUpgrade::make_answer(const RdmaFrame& offer, RdmaFrame& own) {
  link_ = TUTTI_TRY(make_());
  TUTTI_TRY(link_->connect(offer.at));
  own.at = link_->address();
  if (!link_->iwarp()) return {};
  TUTTI_TRY(fill_random(own.nonce));
  auto token = TUTTI_TRY(hmac_of(secret_, calling, own.nonce));
  auto listens = TUTTI_TRY(link_->listen(token));
  own.cm_port = listens.port;
  return {};
}

Result<RdmaUpgrade::State> RdmaUpgrade::probe() {
  auto probed = link_->probed();
  if (!probed) return give_verdict(probed.error().text());
  if (*probed) return give_verdict("");
  if (system_.now_ns() < probe_until_ns_) return State::probe;
  return give_verdict("an empty write was not answered");
}

Result<RdmaUpgrade::State> RdmaUpgrade::hear_verdict() {
  auto heard = TUTTI_TRY(receive(RdmaFrame::Kind::verdict));
  if (!heard) return State::verdict;
  agreed_ = why_.empty() && heard->refusal.empty();
  if (why_.empty()) why_ = heard->refusal;
  return State::say;
}

std::int64_t RdmaUpgrade::poll_set(std::vector<PollItem>& items) const {
  if (state_ == State::begin) return system_.now_ns();
  if (state_ == State::probe) {
    link_->poll_set_to_probe(items);
    return system_.now_ns() + look_ns;
  }
  if (state_ == State::join) items.push_back(link_->interest_to_join());
  if (state_ != State::join || !connects_) items.push_back(wire_.interest());
  return state_ == State::join ? probe_until_ns_ : give_up_ns_;
}

ChannelUpgrade::Outcome RdmaUpgrade::take() {
  Outcome outcome{.socket = std::move(wire_).take_socket(), .kept = link_, .why = why_, .failure = failure_};
  if (!agreed_) return outcome;
  outcome.why = link_->over();
  outcome.sender = {link_, &link_->out()};
  outcome.receiver = {link_, &link_->in()};
  outcome.stop = [link = link_] { link->stop(); };
  return outcome;
}

}  // namespace tutti
