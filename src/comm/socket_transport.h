// Messages between ranks of different hosts, through TCP connections.
#pragma once

#include "comm/remote_channel.h"
#include "comm/transports.h"

namespace tutti {

class SocketTransport final : public Transport {
 public:
  static Result<bool> usable(Process&) { return true; }
  static std::unique_ptr<Transport> make(Process& process, const Membership& members, std::uint32_t bit);

  std::string_view name() const override { return "socket"; }
  bool connects(Rank) const override { return true; }
  Ends open(const PairOfRanks& pair) override;
  std::size_t slot_bytes_min() const override { return socket_slot_bytes; }
};

/// What a channel needs to open its connections.
RemotePlace remote_place(const PairOfRanks& pair);
/// Both directions of a channel, usable before it is open.
Ends ends_of(const std::shared_ptr<RemoteChannel>& channel);

}  // namespace tutti
