// How a channel between two hosts, which begins as TCP connections, comes to use a faster wire.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "transport/fifo.h"

namespace tutti {

/// The two ends of a channel agree, through the channel's first connection, whether they use a faster wire instead. The
/// end that was connected to does this in its service thread, because its rank may be busy elsewhere.
class ChannelUpgrade {
 public:
  virtual ~ChannelUpgrade() = default;

  /// True once it is decided. Never blocks. A wire that cannot be used is a reason to stay with the connection.
  virtual bool advance() = 0;
  /// Adds the handles to wait for; returns the latest time for the next advance.
  virtual std::int64_t poll_set(std::vector<PollItem>& items) const = 0;

  struct Outcome {
    Socket socket;                            ///< the connection
    std::shared_ptr<Sender> sender = {};      ///< null: the channel stays with its connections
    std::shared_ptr<Receiver> receiver = {};  ///< set if sender is
    std::shared_ptr<void> kept = {};          ///< to be kept while the peer may still send
    std::function<void()> stop = {};          ///< see Connection::stop; set if sender is
    std::string why = {};                     ///< the wire and device, or why there is none
    std::optional<Error> failure = {};  ///< the agreement broke off, and parts of it may be left in the connection
  };
  /// Once decided; the upgrade must not be used afterwards.
  virtual Outcome take() = 0;
};

}  // namespace tutti
