// What a pair's sender and receiver have in common where they are the two directions of a connection.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "transport/fifo.h"

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

/// How a channel between two hosts, which begins as TCP connections, comes to use a faster wire. The two ends agree,
/// through the channel's first connection, whether they use a faster wire instead. The end that was connected to does
/// this in its service thread, because its rank may be busy elsewhere.
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
