// What carries messages between two ranks: a list of transports, of which each pair takes the first that connects it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/membership.h"
#include "transport/fifo.h"
#include "transport/flag.h"

namespace tutti {

/// A connection of a pair that opens when it is first needed.
class OpeningLink {
 public:
  virtual ~OpeningLink() = default;
  /// Adds the handles of what is being opened.
  virtual void poll_set(std::vector<PollItem>& items) const = 0;
  /// It was asked for, and the peer, whose part it is, has not connected yet.
  virtual bool awaits_arrival() const = 0;
  /// At its end: what is to be closed once the peer has read all of it; nothing of what is broken.
  virtual std::vector<Socket> take_sockets() = 0;
};

/// What connects a rank with a peer on one channel.
struct PairOfRanks {
  Process& process;
  const Membership& members;
  Rank peer = 0;
  int channel = 0;
  std::size_t slot_bytes = 0;  ///< alike at both ends
};
struct Ends {
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  std::optional<Signal> signal = {};          ///< where ranks reach each other's memory: to order accesses
  std::shared_ptr<OpeningLink> opening = {};  ///< where it is not open yet
};

/// A new transport is one more of these: its own files, and a line in the list.
struct Transport {
  std::string_view name;  ///< for people, where messages go by it; empty: as the access is called
  /// Whether it connects this rank with `peer`; alike at both.
  bool (*connects)(const Membership& members, Rank peer);
  /// Neither waits nor fails: what does not open shows when it is used.
  Ends (*open)(const PairOfRanks& pair);
  std::size_t slot_bytes_min = 0;  ///< where all pairs of a communicator go by it
};

/// The first of the list that connects this rank with `peer`. Transports further down compare greater.
const Transport& transport_to(const Membership& members, Rank peer);

}  // namespace tutti
