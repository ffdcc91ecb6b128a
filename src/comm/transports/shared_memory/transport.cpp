// Messages between ranks of one host, through slots in the receiver's area.
#include "comm/transports/transport.h"
#include "transport/shm.h"

namespace tutti {
namespace {

class SharedMemoryTransport final : public Transport {
 public:
  explicit SharedMemoryTransport(const Membership& members) : members_(members) {}
  std::string_view name() const override { return ""; }
  bool connects(Rank peer) const override { return !members_.peers[static_cast<std::size_t>(peer)].remote(); }
  Ends open(const PairOfRanks& pair) override {
    System& system = pair.process.system;
    const RankArea& mine = members_.area->area;
    const RankArea& theirs = members_.peers[static_cast<std::size_t>(pair.peer)].area;
    const int channel = pair.channel;
    return {.sender = std::make_unique<ShmSender>(system, mine, members_.rank, theirs, pair.peer, channel,
                                                  members_.oversubscribed, pair.memory),
            .receiver = std::make_unique<ShmReceiver>(system, mine, members_.rank, theirs, pair.peer, channel,
                                                      members_.oversubscribed, pair.memory),
            .signal = Signal(theirs.flags(channel, members_.rank).signal, mine.flags(channel, pair.peer).signal)};
  }

 private:
  const Membership& members_;
};

}  // namespace

constinit const TransportEntry transports::shared_memory = {
    .usable = [](Process&) -> Result<bool> { return true; },
    .make = [](Process&, const Membership& members, std::uint32_t) -> std::unique_ptr<Transport> {
      return std::make_unique<SharedMemoryTransport>(members);
    }};

}  // namespace tutti
