// The ends of an open channel, over its connections or a faster wire, and what they need.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/system.h"
#include "transport/connection.h"
#include "transport/socket.h"
#include "transport/unacknowledged.h"

namespace tutti {

class OpenChannel {
 public:
  /// False: the channel is not open, and has nothing of what follows.
  explicit operator bool() const { return sender_ != nullptr; }
  Sender& sender() { return *sender_; }
  Receiver& receiver() { return *receiver_; }

  /// `watch`: watches the connections; null: nothing does.
  void use(System& system, std::vector<Socket> sockets, const SocketLink::Ends& ranks, int slots,
           std::size_t slot_bytes, const std::shared_ptr<Unacknowledged>& watch) {
    link_ = std::make_shared<SocketLink>(system, std::move(sockets), ranks);
    for (std::size_t i = 0; watch && i < link_->size(); ++i) watched_.emplace_back(watch, ranks.peer, link_->socket(i));
    sender_ = std::make_shared<SocketSender>(link_, std::max(slots, socket_slots_min), slot_bytes);
    receiver_ = std::make_shared<SocketReceiver>(link_, slot_bytes);
  }
  /// Takes all but the connection; without a wire, the channel is not open.
  void use(ChannelUpgrade::Outcome& wire) {
    sender_ = std::move(wire.sender);
    receiver_ = std::move(wire.receiver);
    kept_ = std::move(wire.kept);
    stop_ = std::move(wire.stop);
  }
  /// See Connection::stop.
  void stop() {
    if (sender_ && stop_) stop_();
  }

  void unwatch() { watched_.clear(); }
  bool over_sockets() const { return link_ != nullptr; }
  /// Afterwards neither end may be used.
  ChannelRemains take_remains() {
    ChannelRemains remains;
    if (link_) remains.sockets = link_->take_sockets();
    if (kept_) remains.kept.push_back(std::move(kept_));
    return remains;
  }

 private:
  /// Of a socket's sender at least: as many messages leave in one system call. Their memory is made when needed.
  static constexpr int socket_slots_min = 16;

  std::shared_ptr<SocketLink> link_;
  std::vector<Unacknowledged::Watched> watched_;  // of the link
  std::shared_ptr<void> kept_;                    // of a wire
  std::function<void()> stop_;                    // the same
  std::shared_ptr<Sender> sender_;
  std::shared_ptr<Receiver> receiver_;
};

}  // namespace tutti
