#include "comm/transports.h"

#include <algorithm>

#include "comm/remote_channel.h"
#include "transport/shm.h"
#include "transport/socket.h"

namespace tutti {
namespace {

bool share_memory(const Membership& members, Rank peer) {
  return !members.peers[static_cast<std::size_t>(peer)].remote();
}

Ends open_shared_memory(const PairOfRanks& pair) {
  const Membership& members = pair.members;
  System& system = pair.process.system;
  const RankArea& mine = members.area->area;
  const RankArea& theirs = members.peers[static_cast<std::size_t>(pair.peer)].area;
  const int channel = pair.channel;
  return {.sender = std::make_unique<ShmSender>(system, mine, members.rank, theirs, pair.peer, channel,
                                                members.oversubscribed, pair.memory),
          .receiver = std::make_unique<ShmReceiver>(system, mine, members.rank, theirs, pair.peer, channel,
                                                    members.oversubscribed, pair.memory),
          .signal = Signal(theirs.signal(channel, members.rank), mine.signal(channel, pair.peer))};
}

bool any(const Membership&, Rank) {
  return true;
}

Ends open_socket(const PairOfRanks& pair) {
  const Membership& members = pair.members;
  const Config& config = pair.process.config;
  const Peer& peer = members.peers[static_cast<std::size_t>(pair.peer)];
  auto channel = std::make_shared<RemoteChannel>(
      pair.process.system, members.arrivals,
      RemotePlace{.rank = members.rank,
                  .peer = pair.peer,
                  .channel = pair.channel,
                  .sockets = members.sockets,
                  .congestion = config.text("TUTTI_SOCKET_CC"),
                  .slots = members.area->area.shape().slots,
                  .slot_bytes = pair.slot_bytes,
                  .addresses = peer.addresses,
                  .who = members.describe(pair.peer),
                  .connect_limit_ns = config.integer("TUTTI_INIT_TIMEOUT_MS") * 1'000'000,
                  .header = &peer.area.header()});
  return {.sender = std::make_unique<RemoteSender>(channel),
          .receiver = std::make_unique<RemoteReceiver>(channel),
          .opening = channel};
}

/// Best transport first; the last one connects any pair.
constexpr Transport list[] = {
    {.name = "", .connects = share_memory, .open = open_shared_memory},
    {.name = "socket", .connects = any, .open = open_socket, .slot_bytes_min = socket_slot_bytes},
};

}  // namespace

const Transport& transport_to(const Membership& members, Rank peer) {
  return *std::ranges::find_if(list, [&](const Transport& one) { return one.connects(members, peer); });
}

}  // namespace tutti
