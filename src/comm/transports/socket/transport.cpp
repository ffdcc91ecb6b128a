// Messages between ranks of different hosts, through TCP connections.
#include "comm/transports/socket/remote_ends.h"
#include "transport/socket_tuning.h"

namespace tutti {

RemoteChannelConfig remote_channel_config(const PairOfRanks& pair) {
  const Membership& members = pair.members;
  const Config& config = pair.process.config;
  const Peer& peer = members.peers[static_cast<std::size_t>(pair.peer)];
  ProbeTarget life;
  if (members.control && !members.control->links_to(pair.peer))
    life = {
        .key = members.arrivals->key(), .from = members.rank, .to = pair.peer, .addresses = in_order(peer.addresses)};
  return {.rank = members.rank,
          .peer = pair.peer,
          .channel = pair.channel,
          .sockets = members.sockets,
          .congestion = config.text("TUTTI_SOCKET_CC"),
          .patience_ns = patience_ns(config.integer("TUTTI_SILENCE_MS") * 1'000'000),
          .unacknowledged = members.unacknowledged,
          .slots = members.area->area.shape().slots,
          .slot_bytes = pair.slot_bytes,
          .addresses = peer.addresses,
          .who = members.describe(pair.peer),
          .connect_limit_ns = config.integer("TUTTI_INIT_TIMEOUT_MS") * 1'000'000,
          .header = &peer.area.header(),
          .life = std::move(life)};
}

Ends ends_of(const std::shared_ptr<RemoteChannel>& channel) {
  return {.sender = std::make_unique<RemoteSender>(channel),
          .receiver = std::make_unique<RemoteReceiver>(channel),
          .connection = channel};
}

namespace {

class SocketTransport final : public Transport {
 public:
  std::string_view name() const override { return "socket"; }
  bool connects(Rank) const override { return true; }
  Ends open(const PairOfRanks& pair) override {
    return ends_of(
        std::make_shared<RemoteChannel>(pair.process.system, pair.members.arrivals, remote_channel_config(pair)));
  }
  std::size_t slot_bytes_min() const override { return socket_slot_bytes; }
};

}  // namespace

constinit const TransportEntry transports::socket = {
    .usable = [](Process&) -> Result<bool> { return true; },
    .make = [](Process&, const Membership&, std::uint32_t) -> std::unique_ptr<Transport> {
      return std::make_unique<SocketTransport>();
    }};

}  // namespace tutti
