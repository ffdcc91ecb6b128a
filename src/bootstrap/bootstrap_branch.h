// A rank's children during the start: admits them, passes their frames up to the root and the root's frames down to
// them.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap_acceptor.h"
#include "net/wire.h"

namespace tutti::bootstrap {

/// Part of a rank's side. A failure of a child never ends the rank: a child that is lost or sends malformed frames is
/// reported upwards.
class Branch {
 public:
  using SharedFrame = std::shared_ptr<const Bytes>;

  /// Listens on any port of `host`. `secret` must outlive this. Errors: system.
  static Result<std::unique_ptr<Branch>> open(System& system, const std::string& host, const Secret& secret, int rank,
                                              int ranks, std::size_t blob_bytes_max);
  const SocketAddress& address() const { return at_; }

  /// Accepts, reads and writes.
  void advance();
  /// The frames for the root since the last time.
  std::vector<SharedFrame> take_rising() { return std::exchange(rising_, {}); }
  void hand_down(const SharedFrame& frame);
  /// For when all ranks have met: no further connection is expected.
  void stop_accepting() { acceptor_.close(); }

  /// Whether all ranks below have the answer of this exchange; lost ranks need none.
  bool confirmed(std::uint32_t round) const;
  /// "rank 3 (pid 12 on node-b)": the first rank that has not confirmed.
  std::string awaited(std::uint32_t round) const;
  /// Connections that did not prove the secret, here and as last reported from below.
  std::uint64_t refused() const;

  std::int64_t poll_set(std::vector<PollItem>& items) const;

 private:
  struct Child {
    Wire wire;
    int rank;
    std::string process = {};  ///< once joined
    bool joined = false;
    std::uint32_t confirmed = 0;  ///< number of exchanges
    std::uint64_t refused = 0;
  };
  Branch(System& system, const SharedListener::Registration& registration, const Secret& secret, int rank, int ranks,
         std::size_t blob_bytes_max);
  void serve(Child& child);
  void obey(Child& child, const Frame& frame);
  void join(Child& child, const Frame& frame);
  void lose(Child& child, const std::string& reason, bool left = false);

  System& system_;
  SocketAddress at_;
  int rank_;
  int ranks_;
  std::size_t blob_bytes_max_;
  Acceptor acceptor_;
  std::list<Child> children_;
  std::vector<SharedFrame> rising_;
  std::uint64_t refused_below_ = 0;  ///< by children that have gone
};

}  // namespace tutti::bootstrap
