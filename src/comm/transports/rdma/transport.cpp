// Messages between ranks of different hosts by RDMA. A channel begins as a TCP connection, through which both ends
// agree on RDMA; where they do not, the channel stays with sockets.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "comm/transports/rdma/upgrade.h"
#include "comm/transports/socket/remote_ends.h"
#include "comm/transports/transport.h"
#include "transport/verbs/port.h"

namespace tutti {
namespace {

/// Of one message that is copied by the processor anyway.
constexpr std::uint32_t inline_bytes = 128;
/// Limit of a completion queue, of which each entry takes about 64 bytes; pairs beyond it use sockets.
constexpr std::size_t completions_max = 400'000;

/// Of adapters of the last ten years: one way, and what a processor spends on a message at one end.
constexpr double hop_us = 2, message_us = 0.3;
constexpr double copy_gbps = 8;

class RdmaTransport final : public Transport {
 public:
  RdmaTransport(Process& process, const Membership& members, std::uint32_t bit)
      : process_(process), members_(members), bit_(bit) {
    said_.resize(members.peers.size());
  }
  ~RdmaTransport() override {
    if (awaits_upgrades_) members_.arrivals->upgrade_by({});
  }
  std::string_view name() const override { return "rdma"; }
  bool connects(Rank peer) const override { return members_.peers[static_cast<std::size_t>(peer)].remote(); }
  /// The first pair to open shows the size of slots, which is that of all pairs. From then on peers' connections are
  /// answered, by the service thread.
  Ends open(const PairOfRanks& pair) override {
    if (!awaits_upgrades_) {
      awaits_upgrades_ = true;
      const Config& config = process_.config;
      slot_bytes_ = pair.slot_bytes;
      ranges_ = pair.ranges;
      queue_pairs_ = static_cast<int>(config.integer("TUTTI_IB_QPS_PER_CONNECTION"));
      queues_ = {.inline_bytes = inline_bytes,
                 .traffic_class = static_cast<int>(config.integer("TUTTI_IB_TC")),
                 .timeout = static_cast<int>(config.integer("TUTTI_IB_TIMEOUT")),
                 .retries = static_cast<int>(config.integer("TUTTI_IB_RETRY_CNT"))};
      members_.arrivals->upgrade_by(
          [this](const Greeting& greeting, Socket& socket) { return upgrade(greeting, socket); });
      (void)process_.service.add(members_.arrivals);  // where there is no service thread, the start has failed
    }
    RemoteChannelConfig place = remote_channel_config(pair);
    place.upgrade = [this](const Greeting& greeting, Socket& socket) { return upgrade(greeting, socket); };
    place.upgrade_required = process_.config.text("TUTTI_TRANSPORT") == "rdma";
    place.decided = [this, pair](bool upgraded, const std::string& why) { say(pair, upgraded, why); };
    return ends_of(std::make_shared<RemoteChannel>(process_.system, members_.arrivals, std::move(place)));
  }
  bool sends_segments() const override { return true; }
  std::size_t slot_bytes_min() const override { return 256 * 1024; }

 private:
  /// Null if the other end cannot use RDMA: then it does not expect an agreement.
  std::shared_ptr<ChannelUpgrade> upgrade(const Greeting& greeting, Socket& socket) {
    const bool is_caller = greeting.from == members_.rank;
    const Rank peer = is_caller ? greeting.to : greeting.from;
    const auto can = [&](Rank rank) { return (members_.peers[static_cast<std::size_t>(rank)].transports & bit_) != 0; };
    if (!can(members_.rank) || !can(peer) || !this->connects(peer)) return nullptr;
    auto secret = members_.arrivals->key().for_greeting(write_greeting(greeting));
    if (!secret) return nullptr;
    const auto own = process_.system.address(socket);
    return std::make_shared<RdmaUpgrade>(
        process_.system, std::move(socket), is_caller, *secret,
        [this, greeting, host = own ? own->host : std::string()] { return make_link(greeting, host); },
        process_.config.integer("TUTTI_INIT_TIMEOUT_MS") * 1'000'000);
  }
  Result<std::shared_ptr<verbs::Link>> make_link(const Greeting& greeting, const std::string& own_address) {
    const Rank peer = greeting.from == members_.rank ? greeting.to : greeting.from;
    auto at = TUTTI_TRY(endpoint(greeting.channel, own_address));
    const int queue_pairs = at->port.iwarp ? 1 : queue_pairs_;
    return verbs::Link::make(
        std::move(at),
        {.slots = members_.area->area.shape().slots, .slot_bytes = slot_bytes_, .queue_pairs = queue_pairs}, queues_,
        peer, members_.describe(peer));
  }
  Result<std::shared_ptr<verbs::Endpoint>> endpoint(int channel, const std::string& own_address) {
    const std::lock_guard lock(mutex_);
    if (ports_.empty()) ports_ = TUTTI_TRY(process_.network.rdma.ports(process_.system, process_.config, process_.log));
    const std::size_t index = verbs::choose_port(ports_, own_address, members_.nearest_nic, channel);
    auto& known = endpoints_[index];
    if (!known) {
      const verbs::LinkShape shape{.slots = members_.area->area.shape().slots, .slot_bytes = slot_bytes_};
      const bool iwarp = ports_[index].iwarp;
      const std::size_t each = shape.completions(iwarp) * static_cast<std::size_t>(iwarp ? 1 : queue_pairs_);
      const auto channels = static_cast<std::size_t>(members_.area->area.shape().channels);
      const std::size_t pairs = members_.peers.size() * channels;
      known = TUTTI_TRY(verbs::Endpoint::open(ports_[index], std::clamp<std::size_t>(completions_max / each, 1, pairs),
                                              each, {.segments = &process_.memory.segments, .ranges = ranges_},
                                              process_.config.text("TUTTI_IB_MEMORY_WINDOWS") == "1",
                                              {.rank = members_.rank, .name = members_.describe(members_.rank)}));
      // After the ports were looked up: a device may have been opened only then.
      if (auto events = process_.network.rdma.events(process_.log)) (void)process_.service.add(std::move(events));
      if (const auto trouble = ports_[index].device->windows.take_trouble())
        process_.log.warn(members_.name,
                          "RDMA: {} opens no memory windows: {}. Messages go through slots, which costs one more copy. "
                          "TUTTI_IB_MEMORY_WINDOWS=0 does not try",
                          ports_[index].device->name, *trouble);
    }
    return known;
  }
  void say(const PairOfRanks& pair, bool upgraded, const std::string& why) {
    if (!upgraded) pair.falls_back();
    Said& said = said_[static_cast<std::size_t>(pair.peer)];
    const std::string who = fmt::format("{}, channel {}", members_.describe(pair.peer), pair.channel);
    if (upgraded) {
      if (said.over.insert(why).second)
        process_.log.info(LogTopic::net, members_.name, "{}: by RDMA over {}", who, why);
    } else if (!std::exchange(said.falls_back, true) && process_.network.rdma.is_news(why)) {
      process_.log.warn(members_.name,
                        "{}: by sockets, although both ranks have RDMA: {}. TUTTI_TRANSPORT=rdma makes this an error",
                        who, why);
    }
  }

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

Result<bool> usable(Process& process) {
  const std::string& transport = process.config.text("TUTTI_TRANSPORT");
  const bool forced = transport == "rdma";
  if (transport == "socket" || &process.system != &real_system()) return false;
  if (process.config.text("TUTTI_IB_DISABLE") == "1") {
    if (!forced) return false;
    return Error{.code = Code::invalid_usage, .what = "TUTTI_TRANSPORT=rdma, but TUTTI_IB_DISABLE=1 forbids RDMA"};
  }
  auto ports = process.network.rdma.ports(process.system, process.config, process.log);
  if (ports) return true;
  if (forced) return std::move(ports).error().during("use RDMA, as TUTTI_TRANSPORT=rdma demands");
  process.log.info(LogTopic::net, "RDMA", "not used: {}", ports.error().text());
  return false;
}

/// A message is a post and a completion. The rate is that of copies into slots and out of them, or of the port.
std::optional<SocketRates> rates(Process& process) {
  auto ports = process.network.rdma.ports(process.system, process.config, process.log);
  if (!ports) return std::nullopt;
  const double port_gbps = static_cast<double>(ports->front().mbps) / 8000;
  return SocketRates{.hop_us = hop_us, .message_us = message_us, .gbps = std::clamp(port_gbps, 0.1, copy_gbps)};
}

}  // namespace

constinit const TransportEntry transports::rdma = {
    .usable = usable,
    .make = [](Process& process, const Membership& members, std::uint32_t bit) -> std::unique_ptr<Transport> {
      return std::make_unique<RdmaTransport>(process, members, bit);
    },
    .rates = rates};

}  // namespace tutti
