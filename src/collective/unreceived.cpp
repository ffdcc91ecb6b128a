#include "collective/unreceived.h"

#include <cstring>

#include <fmt/format.h>

#include "collective/point_to_point.h"
#include "comm/peer_failure.h"
#include "plan/amount.h"

namespace tutti {
namespace {

using Header = PointToPoint::Header;

Error misuse(Rank peer, std::string what) {
  return {.code = Code::invalid_usage, .what = std::move(what), .peer = peer};
}

/// What a peer has sent and this rank has not asked for.
Result<void> check_from(Communicator& communicator, Rank peer) {
  const bool remote = communicator.members().peers[peer].remote();
  Receiver& receiver = *communicator.channels().point_to_point().receivers[peer];
  if (!receiver.can_have_come()) return {};
  const auto message = receiver.peek(remote ? sizeof(Header) : 0);  // shared memory stores the length
  if (!message || message->data() == nullptr) return {};            // a connection that has ended brings nothing more
  Header header;
  if (message->size() < sizeof header) return Error{.code = Code::remote, .what = "a message has no header"};
  std::memcpy(&header, message->data(), sizeof header);
  const Channels& channels = communicator.channels();
  const std::size_t fits = channels.slot_bytes() * static_cast<std::size_t>(channels.slots()) - sizeof header;
  // The sender of such a message still waits, and hears that this rank leaves.
  if (!remote && (header.carried.carry != Carry::slots || header.bytes > fits)) return {};
  return misuse(peer, fmt::format("rank {} sent {}, which rank {} has not received before it left", peer,
                                  amount(header.bytes, header.type), communicator.rank()));
}

/// Of ranks of this host alone: others confirm nothing.
Result<void> check_to(Communicator& communicator, Rank peer) {
  if (communicator.members().peers[peer].remote() || !has_left(communicator, peer)) return {};
  const auto settled = communicator.channels().point_to_point().senders[peer]->settled();
  if (!settled || *settled) return {};
  return misuse(peer, fmt::format("{} left without receiving a message that rank {} has sent to it",
                                  communicator.describe(peer), communicator.rank()));
}

}  // namespace

Result<void> check_all_received(Communicator& communicator) {
  for (Rank peer = 0; peer < communicator.ranks(); ++peer) {
    if (peer == communicator.rank()) continue;
    if (auto checked = check_from(communicator, peer); !checked) return checked;
    if (auto checked = check_to(communicator, peer); !checked) return checked;
  }
  return {};
}

}  // namespace tutti
