// One channel to a rank of another host: its connections open when a plan first needs them, and carry a fifo in each
// direction.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/system.h"
#include "net/arrivals.h"
#include "net/connector.h"
#include "net/life_probe.h"
#include "net/open_channel.h"
#include "net/peer_address.h"
#include "transport/connection.h"
#include "transport/rank_area.h"

namespace tutti {

/// Both ranks of a channel, and the parameters on which they agree.
struct RemoteChannelConfig {
  int rank = 0;  ///< this rank
  int peer = 0;
  int channel = 0;
  int sockets = 1;
  std::string congestion;                               ///< congestion control: see choose_congestion
  std::int64_t patience_ns = 0;                         ///< see System::set_patience
  std::shared_ptr<Unacknowledged> unacknowledged = {};  ///< watches the connections; null: nothing does
  int slots = 4;
  std::size_t slot_bytes = 64 * 1024;
  std::vector<PeerAddress> addresses;  ///< of the peer's listeners; the channels use them in turn
  std::string who;                     ///< the peer, for messages
  std::int64_t connect_limit_ns = 0;   ///< limit for opening one connection
  const AreaHeader* header = nullptr;  ///< the peer's mirrored header
  /// Makes the upgrade at the end that connects; none: both ends use sockets.
  std::function<std::shared_ptr<ChannelUpgrade>(const Greeting& greeting, Socket& socket)> upgrade = {};
  /// Of a peer without a control connection, which may leave or end and nobody hears of it here; no addresses: it has
  /// one.
  ProbeTarget life = {};
  std::function<void(bool upgraded, const std::string& why)> decided = {};  ///< called once where there is an upgrade
  bool upgrade_required = false;  ///< where an upgrade that both ends wanted fails, so does the channel
};

/// Both directions of a channel. The rank with the higher number connects, the other rank takes the connections that
/// arrive. Each begins when it first sends or receives, or is asked to open, and never blocks. Driven by one thread at
/// a time.
class RemoteChannel final : public Connection {
 public:
  RemoteChannel(System& system, std::shared_ptr<Arrivals> arrivals, RemoteChannelConfig place);

  /// True once the channel is open: then sender() and receiver() are valid. Errors: as judge.
  Result<bool> open();
  Sender& sender() { return ends_.sender(); }
  Receiver& receiver() { return ends_.receiver(); }
  Landing& landing() { return *ends_.receiver().landing(); }  // what comes from another host arrives in parts
  std::size_t slot_bytes() const { return place_.slot_bytes; }
  bool is_open() const { return static_cast<bool>(ends_); }
  /// Whether some of it is here, but not all.
  bool opens() const { return !is_open() && (!sockets_.empty() || arrivals_->is_coming(place_.peer, place_.channel)); }
  /// Whether this end connects, rather than takes the other end's connection.
  bool connects() const { return place_.rank > place_.peer; }
  bool opened() override;
  bool may_have_arrived() const override { return is_open() || !connects(); }
  void stop() override { ends_.stop(); }
  bool awaits_arrival() const override { return wanted_ && !is_open() && place_.rank < place_.peer; }

  /// Handles an error of this channel's connections. If the peer has just failed or its process has ended, that becomes
  /// known another way within a moment, so false means: wait for that. Errors: remote (the peer has left, failed or
  /// is lost); after a second, the error itself.
  Result<bool> judge(Error error);
  /// True after the first call of judge: nothing can be sent any more. judge_again judges the same error again.
  bool broken() const { return broken_.has_value(); }
  /// The receiver has returned an error: until then it gives what has arrived, even if the connection is broken.
  void note_read_out() { read_out_ = true; }
  bool read_out() const { return read_out_; }
  Result<bool> judge_again() { return judge(*broken_); }

  void poll_set(std::vector<PollItem>& items) const override;

  /// For the end of the channel: what it has if it is open and not broken, otherwise nothing.
  ChannelRemains take_remains() override;

 private:
  Greeting greeting(std::size_t index) const;
  Result<bool> gather_sockets();
  Result<std::optional<Arrivals::Arrival>> next_socket(std::size_t index);
  Error own_lack(const Error& error) const;
  Result<bool> upgrade();

  System& system_;
  std::shared_ptr<Arrivals> arrivals_;
  RemoteChannelConfig place_;
  std::vector<Socket> sockets_;         // connections open so far
  std::optional<Connector> connector_;  // opens the next connection
  std::shared_ptr<ChannelUpgrade> upgrade_;
  bool upgrade_begun_ = false;
  bool lacks_upgrade_ = false;  // which it must have
  PeerPresence presence_;       // while this end waits for the peer's connection
  OpenChannel ends_;
  bool wanted_ = false;
  std::optional<Error> broken_;
  std::int64_t broken_ns_ = 0;
  bool read_out_ = false;
};

/// Sender and receiver of a channel, usable before and after the channel is open.
class RemoteSender final : public Sender, public Offering {
 public:
  explicit RemoteSender(std::shared_ptr<RemoteChannel> channel) : channel_(std::move(channel)) {}
  Result<std::span<std::byte>> acquire() override;
  Result<void> commit(std::size_t bytes) override;
  Result<bool> flush() override;
  Result<Settled> settled() override { return settled_when(flush()); }
  std::size_t slot_bytes() const override { return channel_->slot_bytes(); }
  Offering* offering() override { return this; }
  bool offer(std::size_t at, std::span<const std::byte> memory) override {
    Offering* const offering = channel_->sender().offering();
    return offering != nullptr && offering->offer(at, memory);
  }
  bool keep(std::span<const std::byte> memory) override {
    return !channel_->is_open() || kept(channel_->sender(), memory);
  }
  void poll_set(std::vector<PollItem>& items) const override;

 private:
  std::shared_ptr<RemoteChannel> channel_;
};

class RemoteReceiver final : public Receiver, public Landing {
 public:
  explicit RemoteReceiver(std::shared_ptr<RemoteChannel> channel) : channel_(std::move(channel)) {}
  Result<std::span<const std::byte>> peek(std::size_t bytes) override;
  Result<void> release() override { return channel_->receiver().release(); }
  Result<bool> drained() override;
  Landing* landing() override { return this; }
  Result<std::span<const std::byte>> expect(std::size_t bytes) override;
  void read_ahead(bool on) override {
    if (channel_->is_open()) channel_->landing().read_ahead(on);
  }
  Result<std::size_t> arrived(std::size_t at, std::size_t bytes) override;
  Result<std::size_t> land(std::size_t at, std::span<std::byte> into) override;
  Invited invite(std::size_t ahead, std::span<std::byte> memory) override;
  bool closed() override { return !channel_->is_open() || channel_->read_out() || channel_->landing().closed(); }
  /// The news of a peer's end takes as long as its data, so a connection that has not come by then comes soon or never.
  Coming coming() const override {
    return channel_->is_open() ? channel_->landing().coming() : Coming{.at_once = !channel_->opens()};
  }
  void poll_set(std::vector<PollItem>& items) const override;

 private:
  template <class T, class Call>
  Result<T> ask(Call call);

  std::shared_ptr<RemoteChannel> channel_;
};

}  // namespace tutti
