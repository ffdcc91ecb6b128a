// The transports. Each pair of ranks uses the first transport in the list that connects it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/membership.h"
#include "transport/channel_upgrade.h"
#include "transport/fifo.h"
#include "transport/flag.h"
#include "transport/offer.h"
#include "transport/registered_ranges.h"

namespace tutti {

/// A connection of a pair that opens when it is first needed.
class OpeningLink {
 public:
  virtual ~OpeningLink() = default;
  /// Adds the handles of connections being opened.
  virtual void poll_set(std::vector<PollItem>& items) const = 0;
  /// True if the link is needed and the peer, which must connect, has not connected yet.
  virtual bool awaits_arrival() const = 0;
  /// For the end of the link: what may be closed only once the peer has read everything; nothing if the link is broken.
  virtual ChannelRemains take_remains() = 0;
};

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
  std::optional<Signal> signal = {};          ///< orders accesses to memory, if ranks share it
  std::shared_ptr<OpeningLink> opening = {};  ///< set if the connection opens later
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
  /// Whether messages are sent from segments without a copy (see Sender::offer).
  virtual bool sends_segments() const { return false; }
  /// Smallest slot if all pairs of a communicator use this transport.
  virtual std::size_t slot_bytes_min() const { return 0; }
};

/// An entry of the list. To add a transport, write its files and add an entry to the list in transports.cpp.
struct TransportEntry {
  /// Whether this process can use the transport; ranks tell each other at the start. What it finds goes to the log
  /// once. Errors: system (it cannot, and TUTTI_TRANSPORT asks for it).
  Result<bool> (*usable)(Process& process);
  /// `bit`: stands for this entry in Peer::transports.
  std::unique_ptr<Transport> (*make)(Process& process, const Membership& members, std::uint32_t bit);
  /// How fast a wire between hosts is, for the choice of algorithms; null: as was measured for sockets.
  std::optional<SocketRates> (*rates)(Process& process) = nullptr;
};

/// The transports that this process can use: bit i stands for entry i of the list. Errors: those of `usable`.
Result<std::uint32_t> usable_transports(Process& process);

/// The rates of the wire between hosts, if all ranks can use the best one that this process knows; `common`: what all
/// of them can use. Nothing: those of sockets.
std::optional<SocketRates> wire_rates(Process& process, std::uint32_t common);

/// All transports of one communicator, best first.
class Transports {
 public:
  /// `members` must outlive this.
  Transports(Process& process, const Membership& members);

  /// Position in the list of the first transport that connects this rank with `peer`. Slower ones come later.
  std::size_t index_to(Rank peer) const;
  Transport& operator[](std::size_t index) const { return *all_[index]; }
  /// The last one, which connects any pair.
  Transport& last() const { return *all_.back(); }

 private:
  const Membership& members_;
  std::vector<std::unique_ptr<Transport>> all_;
};

}  // namespace tutti
