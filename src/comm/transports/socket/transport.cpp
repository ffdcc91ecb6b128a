// Messages between ranks of different hosts, through TCP connections.
#include "comm/transports/transport.h"
#include "comm/transports/socket/remote_channel.h"

namespace tutti {
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
