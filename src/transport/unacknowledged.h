// Finds connections between hosts that bring nothing to the other end although it lives.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/system.h"

namespace tutti {

/// Watches the data connections of a communicator. Large packets may be lost on the way while small ones pass, as
/// where two interfaces or a switch between them differ in their MTU: then TCP sends the same bytes again and again,
/// nothing ends, and the other end's signs of life arrive. Thread-safe.
class Unacknowledged {
  struct Entry {
    int peer = 0;
    const Socket* socket = nullptr;
    std::uint64_t acknowledged = 0;
    std::int64_t looked_ns = 0;  // 0: not yet
    std::int64_t stuck_ns = 0;
  };

 public:
  /// As long as it lives, its connection is watched.
  class Watched {
   public:
    Watched(std::shared_ptr<Unacknowledged> by, int peer, const Socket& socket);
    Watched(Watched&&) noexcept = default;
    Watched& operator=(Watched&&) = delete;
    ~Watched();

   private:
    std::shared_ptr<Unacknowledged> by_;
    std::list<Entry>::iterator entry_;
  };

  struct Stuck {
    int peer = 0;
    std::string here;   ///< address of this end
    std::string there;  ///< and of the other one
    int again = 0;      ///< how often the same bytes have been sent again, in a row
    double seconds = 0;
  };
  /// A connection to a peer that `lives`, on which bytes are under way, have been sent again at least four times, and
  /// none has been acknowledged for `limit_ns` of looks that are not more than two seconds apart. For one thread.
  std::optional<Stuck> look(System& system, std::int64_t limit_ns, const std::function<bool(int)>& lives);

 private:
  std::mutex mutex_;
  std::list<Entry> entries_;
};

}  // namespace tutti
