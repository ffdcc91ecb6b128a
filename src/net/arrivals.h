// Connections that peers opened to one rank of one communicator, until it takes them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/system.h"
#include "net/greeting.h"
#include "transport/flag.h"

namespace tutti {

/// Thread-safe: the service thread puts, whoever drives the communicator takes.
class Arrivals {
 public:
  /// What may arrive here. The side with the higher rank connects.
  struct Bounds {
    int rank = 0;
    int ranks = 1;
    int channels = 1;
    int sockets = 1;  ///< of a channel
  };
  Arrivals(System& system, const ConnectionKey& key, const Bounds& bounds)
      : system_(system), key_(key), bounds_(bounds) {}

  const ConnectionKey& key() const { return key_; }
  /// True when a connection with this greeting may come: it is for this rank, within bounds, and none like it was
  /// taken.
  bool may_come(const Greeting& greeting) const;
  /// Whether a probe of this rank's addresses is meant.
  bool is_for(std::uint64_t communicator, int rank) const {
    return communicator == key_.communicator && rank == bounds_.rank;
  }

  /// A proven one. One that nobody took yet is replaced: its maker has given it up. Rings the bell.
  void put(const Greeting& greeting, Socket socket);
  /// The connection `from` opened for that, once it is here.
  std::optional<Socket> take(Purpose purpose, int from, int channel, int index);

  /// Whom to wake when something comes.
  void wakes(std::shared_ptr<Doorbell> bell);

 private:
  using Key = std::tuple<Purpose, int, int, int>;
  static Key key_of(const Greeting& g) { return {g.purpose, g.from, g.channel, g.index}; }

  System& system_;
  ConnectionKey key_;
  Bounds bounds_;
  mutable std::mutex mutex_;
  std::map<Key, Socket> arrived_;  // taken ones are empty
  std::shared_ptr<Doorbell> bell_;
};

}  // namespace tutti
