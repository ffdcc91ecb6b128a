// The shape of a transport: what its folder holds, and what it gives for a pair of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "comm/membership.h"
#include "transport/connection.h"
#include "transport/fifo.h"
#include "transport/flag.h"
#include "transport/offer.h"
#include "transport/registered_ranges.h"

namespace tutti {

/// This rank and a peer, on one channel.
struct PairOfRanks {
  Process& process;
  const Membership& members;
  Rank peer = 0;
  int channel = 0;
  std::size_t slot_bytes = 0;                           ///< equal at both ends
  OfferedMemory* memory = nullptr;                      ///< null: blocks cannot be offered
  std::shared_ptr<const RegisteredRanges> ranges = {};  ///< what the user has registered with the communicator
  std::function<void()> falls_back = {};  ///< called if the pair has to use the last transport of the list instead
};
struct Ends {
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  std::optional<Signal> signal = {};            ///< orders accesses to memory, if ranks share it
  std::shared_ptr<Connection> connection = {};  ///< set if it opens later
};

/// A transport as one communicator uses it, with what it keeps for all of the communicator's pairs.
class Transport {
 public:
  virtual ~Transport() = default;
  /// For messages and logs; empty: the name of the access. A string literal.
  virtual std::string_view name() const = 0;
  /// Whether the transport connects this rank with `peer`; equal on both ranks.
  virtual bool connects(Rank peer) const = 0;
  /// Never blocks or fails: a connection that cannot be opened gives an error when it is used.
  virtual Ends open(const PairOfRanks& pair) = 0;
  /// Whether messages are sent from segments without a copy (see Offering).
  virtual bool sends_segments() const { return false; }
  /// Smallest slot if all pairs of a communicator use this transport.
  virtual std::size_t slot_bytes_min() const { return 0; }
};

/// What each folder of this room defines: transports::<its name>.
struct TransportEntry {
  /// Whether this process can use the transport; ranks tell each other at the start. What it finds goes to the log
  /// once. Errors: system (it cannot, and TUTTI_TRANSPORT asks for it).
  Result<bool> (*usable)(Process& process);
  /// `bit`: stands for this entry in Peer::transports.
  std::unique_ptr<Transport> (*make)(Process& process, const Membership& members, std::uint32_t bit);
  /// How fast a wire between hosts is, for the choice of algorithms; null: as was measured for sockets.
  std::optional<SocketRates> (*rates)(Process& process) = nullptr;
};

namespace transports {
#define TRANSPORT(x) extern const TransportEntry x;
#include "comm/transports/list.inc"
#undef TRANSPORT
}  // namespace transports

}  // namespace tutti
