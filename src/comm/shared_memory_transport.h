// Messages between ranks of one host, through slots in the receiver's area.
#pragma once

#include "comm/transports.h"

namespace tutti {

class SharedMemoryTransport final : public Transport {
 public:
  static Result<bool> usable(Process&) { return true; }
  static std::unique_ptr<Transport> make(Process& process, const Membership& members, std::uint32_t bit);

  explicit SharedMemoryTransport(const Membership& members) : members_(members) {}
  std::string_view name() const override { return ""; }
  bool connects(Rank peer) const override { return !members_.peers[static_cast<std::size_t>(peer)].remote(); }
  Ends open(const PairOfRanks& pair) override;

 private:
  const Membership& members_;
};

}  // namespace tutti
