// The transports. Each pair of ranks uses the first transport in the list that connects it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/membership.h"
#include "transport/fifo.h"
#include "transport/flag.h"
#include "transport/offer.h"

namespace tutti {

/// A connection of a pair that opens when it is first needed.
class OpeningLink {
 public:
  virtual ~OpeningLink() = default;
  /// Adds the handles of connections being opened.
  virtual void poll_set(std::vector<PollItem>& items) const = 0;
  /// True if the link is needed and the peer, which must connect, has not connected yet.
  virtual bool awaits_arrival() const = 0;
  /// For the end of the link: sockets that may be closed only once the peer has read everything; none if the link is
  /// broken.
  virtual std::vector<Socket> take_sockets() = 0;
};

/// This rank and a peer, on one channel.
struct PairOfRanks {
  Process& process;
  const Membership& members;
  Rank peer = 0;
  int channel = 0;
  std::size_t slot_bytes = 0;       ///< equal at both ends
  OfferedMemory* memory = nullptr;  ///< null: blocks cannot be offered
};
struct Ends {
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  std::optional<Signal> signal = {};          ///< orders accesses to memory, if ranks share it
  std::shared_ptr<OpeningLink> opening = {};  ///< set if the connection opens later
};

/// To add a transport, write its files and add an entry to the list in transports.cpp.
struct Transport {
  std::string_view name;  ///< for messages and logs; empty: the name of the access
  /// Whether the transport connects this rank with `peer`; equal on both ranks.
  bool (*connects)(const Membership& members, Rank peer);
  /// Never blocks or fails: a connection that cannot be opened gives an error when it is used.
  Ends (*open)(const PairOfRanks& pair);
  std::size_t slot_bytes_min = 0;  ///< smallest slot if all pairs of a communicator use this transport
};

/// The first transport in the list that connects this rank with `peer`. Later transports have greater addresses.
const Transport& transport_to(const Membership& members, Rank peer);

}  // namespace tutti
