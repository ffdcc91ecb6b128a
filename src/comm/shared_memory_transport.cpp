#include "comm/shared_memory_transport.h"

#include "transport/shm.h"

namespace tutti {

std::unique_ptr<Transport> SharedMemoryTransport::make(Process&, const Membership& members, std::uint32_t) {
  return std::make_unique<SharedMemoryTransport>(members);
}

Ends SharedMemoryTransport::open(const PairOfRanks& pair) {
  System& system = pair.process.system;
  const RankArea& mine = members_.area->area;
  const RankArea& theirs = members_.peers[static_cast<std::size_t>(pair.peer)].area;
  const int channel = pair.channel;
  return {.sender = std::make_unique<ShmSender>(system, mine, members_.rank, theirs, pair.peer, channel,
                                                members_.oversubscribed, pair.memory),
          .receiver = std::make_unique<ShmReceiver>(system, mine, members_.rank, theirs, pair.peer, channel,
                                                    members_.oversubscribed, pair.memory),
          .signal = Signal(theirs.signal(channel, members_.rank), mine.signal(channel, pair.peer))};
}

}  // namespace tutti
