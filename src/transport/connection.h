// What a pair's sender and receiver have in common where they are the two directions of a connection.
#pragma once

#include <memory>
#include <vector>

#include "base/system.h"

namespace tutti {

/// What is left of a channel when its communicator is destroyed: to be kept until the peer has received everything.
struct ChannelRemains {
  std::vector<Socket> sockets;
  std::vector<std::shared_ptr<void>> kept;
};

/// A connection of a pair that opens when it is first needed. Driven by the thread that drives its sender and receiver.
class Connection {
 public:
  virtual ~Connection() = default;

  /// Begins to open it, or goes on with it. True once there is nothing left to open. Errors are for the calls that use
  /// it.
  virtual bool opened() = 0;

  /// Adds the handles to wait for while it is being opened.
  virtual void poll_set(std::vector<PollItem>& items) const = 0;

  /// True if it is needed and the peer, which must connect, has not connected yet.
  virtual bool awaits_arrival() const = 0;

  /// False where nothing can have come, as this end would have to open it first.
  virtual bool may_have_arrived() const = 0;

  /// For a channel that is used no more, before its user's buffers are the user's again: afterwards no device reads or
  /// writes them, in either direction. Nothing arrives or leaves any more.
  virtual void stop() = 0;

  /// For its end: what may be closed only once the peer has read everything; nothing if it is broken.
  virtual ChannelRemains take_remains() = 0;
};

}  // namespace tutti
