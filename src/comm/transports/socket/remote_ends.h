// The channel of a pair of ranks on different hosts.
#pragma once

#include "comm/transports/transport.h"
#include "net/remote_channel.h"

namespace tutti {

/// What a channel needs to open its connections.
RemoteChannelConfig remote_channel_config(const PairOfRanks& pair);
/// Both directions of a channel, usable before it is open.
Ends ends_of(const std::shared_ptr<RemoteChannel>& channel);

}  // namespace tutti
