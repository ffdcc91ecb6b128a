// Messages between ranks of different hosts by RDMA. A channel begins as a TCP connection, through which both ends
// agree on RDMA; where they do not, the channel stays with sockets.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "comm/remote_channel.h"
#include "comm/transports.h"
#include "net/rdma_upgrade.h"

namespace tutti {

class RdmaTransport final : public Transport {
 public:
  static Result<bool> usable(Process& process);
  static std::unique_ptr<Transport> make(Process& process, const Membership& members, std::uint32_t bit);

  /// By the rate of this process's fastest port.
  static std::optional<SocketRates> rates(Process& process);

  RdmaTransport(Process& process, const Membership& members, std::uint32_t bit);
  ~RdmaTransport() override;
  std::string_view name() const override { return "rdma"; }
  bool connects(Rank peer) const override { return members_.peers[static_cast<std::size_t>(peer)].remote(); }
  Ends open(const PairOfRanks& pair) override;
  bool sends_segments() const override { return true; }
  std::size_t slot_bytes_min() const override { return 256 * 1024; }

 private:
  std::shared_ptr<ChannelUpgrade> upgrade(const Greeting& greeting, Socket& socket);
  Result<std::shared_ptr<verbs::Link>> make_link(const Greeting& greeting, const std::string& own_address);
  Result<std::shared_ptr<verbs::Endpoint>> endpoint(int channel, const std::string& own_address);
  void say(const PairOfRanks& pair, bool upgraded, const std::string& why);

  Process& process_;
  const Membership& members_;
  std::uint32_t bit_;
  bool awaits_upgrades_ = false;
  std::size_t slot_bytes_ = 0;
  std::shared_ptr<const RegisteredRanges> ranges_;
  verbs::QueueShape queues_;
  int queue_pairs_ = 1;
  std::mutex mutex_;  // links are made by the service thread, too
  std::vector<verbs::Port> ports_;
  std::map<std::size_t, std::shared_ptr<verbs::Endpoint>> endpoints_;  // by port
  /// What the log says of a peer's channels: each port once, and once that one is left out.
  struct Said {
    std::set<std::string> over;
    bool falls_back = false;
  };
  std::vector<Said> said_;  // by peer
};

}  // namespace tutti
