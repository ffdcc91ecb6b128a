// Connections that peers have opened to one rank of one communicator, until the rank takes them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "base/system.h"
#include "net/greeting.h"
#include "transport/connection.h"
#include "transport/flag.h"

namespace tutti {

/// Thread-safe: the service thread puts connections in, and as a Task agrees on their upgrades; the thread that drives
/// the communicator takes them.
class Arrivals final : public Task {
 public:
  /// Which connections are accepted. The side with the higher rank connects.
  struct Bounds {
    int rank = 0;
    int ranks = 1;
    int channels = 1;
    int sockets = 1;  ///< per channel
  };
  Arrivals(System& system, const ConnectionKey& key, const Bounds& bounds)
      : system_(system), key_(key), bounds_(bounds) {}

  const ConnectionKey& key() const { return key_; }
  /// True if a connection with this greeting is acceptable: it is for this rank, within bounds, and none with the same
  /// greeting has been taken.
  bool may_come(const Greeting& greeting) const;
  /// Whether a probe is for this rank of this communicator.
  bool is_for(std::uint64_t communicator, int rank) const {
    return communicator == key_.communicator && rank == bounds_.rank;
  }

  /// Adds a proven connection and rings the bell. Replaces one with the same greeting that has not been taken: its
  /// maker has given it up.
  void put(const Greeting& greeting, Socket socket);
  /// A connection that has arrived, and the upgrade of its channel, which is decided.
  struct Arrival {
    Socket socket;  ///< none if there is an upgrade, which has it
    std::shared_ptr<ChannelUpgrade> upgrade = {};
  };
  /// The connection that `from` opened for this purpose, once it is here.
  std::optional<Arrival> take(Purpose purpose, int from, int channel, int index);

  /// Whether a data connection of `from` is here and its upgrade not decided yet.
  bool is_coming(int from, int channel) const;

  /// Makes the upgrade of a peer's channel of this first connection; null: the channel is not upgraded.
  using Upgrader = std::function<std::shared_ptr<ChannelUpgrade>(const Greeting& greeting, Socket& socket)>;
  /// From now on, and for connections that have not been taken yet; none: no upgrades begin any more.
  void upgrade_by(Upgrader upgrader);

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

  /// Why no connection can arrive at present; nothing: they can again. Rings the bell.
  void hold_up(const std::optional<Error>& why);
  std::optional<Error> held_up() const;

  /// The doorbell to ring when a connection arrives.
  void wakes(std::shared_ptr<Doorbell> bell);

 private:
  using Key = std::tuple<Purpose, int, int, int>;
  struct Entry {
    Greeting greeting;
    Socket socket;
    std::shared_ptr<ChannelUpgrade> upgrade;
    bool decided = false;
    bool taken = false;
  };
  void begin_upgrade(Entry& entry);
  static Key key_of(const Greeting& g) { return {g.purpose, g.from, g.channel, g.index}; }

  System& system_;
  ConnectionKey key_;
  Bounds bounds_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> arrived_;
  Upgrader upgrader_;
  // of replaced connections: the thread that drives the communicator may be looking at them
  std::vector<std::shared_ptr<ChannelUpgrade>> given_up_;
  std::shared_ptr<Doorbell> bell_;
  std::optional<Error> held_up_;
};

}  // namespace tutti
