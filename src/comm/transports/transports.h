// The transports. Each pair of ranks uses the first transport in the list that connects it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/transports/transport.h"

namespace tutti {

/// The transports that this process can use: bit i stands for entry i of the list. Errors: those of `usable`.
Result<std::uint32_t> usable_transports(Process& process);

/// The rates of the wire between hosts, if all ranks can use the best one that this process knows; `common`: what all
/// of them can use. Nothing: those of sockets.
std::optional<SocketRates> wire_rates(Process& process, std::uint32_t common);

/// All transports of one communicator, best first.
class Transports {
 public:
  /// `members` must outlive this.
  Transports(Process& process, const Membership& members);

  /// Position in the list of the first transport that connects this rank with `peer`. Slower ones come later.
  std::size_t index_to(Rank peer) const;
  Transport& operator[](std::size_t index) const { return *all_[index]; }
  /// The last one, which connects any pair.
  Transport& last() const { return *all_.back(); }

 private:
  const Membership& members_;
  std::vector<std::unique_ptr<Transport>> all_;
};

}  // namespace tutti
