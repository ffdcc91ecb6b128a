// Messages that share links as flows.
#include "analysis/simulator/network.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "analysis/simulator/event_queue.h"

namespace tutti::simulator {
namespace {

constexpr double same_time = 1e-12;  // relative: rounding errors of events that end together
constexpr double same_share = 1e-9;

class FairWire : public NetworkWire {
 public:
  explicit FairWire(const Topology& topology) : NetworkWire(topology), shares_(topology.links().size()) {}

  std::optional<double> send(const Message& message, double at) override {
    starts_.push(at, &message);
    return {};
  }

  bool advance(std::vector<Delivery>& deliveries) override {
    // All flows that begin now are added before rates are computed: that computation is the most expensive part.
    if (starts_.empty() || starts_.next() > soon(now_)) share_out();
    while (!ends_.empty() && !valid(ends_.top())) ends_.pop();
    if (starts_.empty() && ends_.empty()) return false;
    now_ =
        std::max(now_, std::min(starts_.empty() ? infinity : starts_.next(), ends_.empty() ? infinity : ends_.next()));
    while (!ends_.empty() && ends_.next() <= soon(now_)) {
      const End end = ends_.pop();
      if (valid(end)) retire(end.flow, deliveries);
    }
    while (!starts_.empty() && starts_.next() <= soon(now_)) start(*starts_.pop(), deliveries);
    return true;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  struct Flow {
    const Message* message = nullptr;
    std::vector<int> path = {};
    std::vector<std::uint32_t> places = {};  // by hop: the flow's position among the users of the link
    double left = 0;                         // bytes left when the rate was set
    double since = 0;
    double rate = 0;
    double latency = 0;
    std::uint32_t version = 0;  // of the rate; an end event with an earlier version is ignored
    bool seen = false;
    bool fixed = false;
  };
  struct User {
    std::uint32_t flow;
    std::uint32_t hop;
  };
  struct Share {
    std::vector<User> users = {};
    double left = 0;
    std::uint32_t count = 0;  // number of users whose rates are not fixed
    bool seen = false;
    bool changed = false;
  };
  struct End {
    std::uint32_t flow;
    std::uint32_t version;
  };

  static double soon(double time) { return time * (1 + same_time); }
  bool valid(const End& end) const { return flows_[end.flow].version == end.version; }
  Share& share(int link) { return shares_[static_cast<std::size_t>(link)]; }

  void mark(int link) {
    if (std::exchange(share(link).changed, true)) return;
    changed_.push_back(link);
  }
  void start(const Message& message, std::vector<Delivery>& deliveries);
  void retire(std::uint32_t number, std::vector<Delivery>& deliveries);
  void share_out();
  void find_neighbours();
  void fix_rates();
  void set_rate(std::uint32_t number, double rate);

  double now_ = 0;
  std::vector<Share> shares_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> idle_;
  std::vector<int> changed_;             // links whose users have changed since the last computation
  std::vector<int> links_;               // links whose shares may have changed
  std::vector<std::uint32_t> affected_;  // flows over these links
  EventQueue<const Message*> starts_;
  EventQueue<End> ends_;
};

void FairWire::start(const Message& message, std::vector<Delivery>& deliveries) {
  if (idle_.empty()) {
    idle_.push_back(static_cast<std::uint32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const std::uint32_t number = idle_.back();
  Flow& flow = flows_[number];
  topology_.route(message.from, message.to, flow.path);
  flow.latency = 0;
  for (const int link : flow.path) flow.latency += topology_.links()[static_cast<std::size_t>(link)].latency_ns;
  if (message.bytes <= 0) {
    deliveries.push_back({&message, now_, now_ + flow.latency});
    return;
  }
  idle_.pop_back();
  flow.message = &message;
  flow.left = message.bytes;
  flow.since = now_;
  flow.rate = 0;
  flow.places.clear();
  for (std::size_t hop = 0; hop < flow.path.size(); ++hop) {
    std::vector<User>& users = share(flow.path[hop]).users;
    flow.places.push_back(static_cast<std::uint32_t>(users.size()));
    users.push_back({number, static_cast<std::uint32_t>(hop)});
    mark(flow.path[hop]);
  }
}

void FairWire::retire(std::uint32_t number, std::vector<Delivery>& deliveries) {
  Flow& flow = flows_[number];
  for (std::size_t hop = 0; hop < flow.path.size(); ++hop) {
    const int link = flow.path[hop];
    std::vector<User>& users = share(link).users;
    const User last = users.back();
    users[flow.places[hop]] = last;
    flows_[last.flow].places[last.hop] = flow.places[hop];
    users.pop_back();
    mark(link);
    carried_[static_cast<std::size_t>(link)] += flow.message->bytes;
  }
  deliveries.push_back({flow.message, now_, now_ + flow.latency});
  ++flow.version;
  idle_.push_back(number);
}

/// Max-min fair: the links that give their users the least fix these users' rates, and the other users share the rest.
/// Considers only flows that share links with a change, directly or through others.
void FairWire::share_out() {
  if (changed_.empty()) return;
  find_neighbours();
  fix_rates();
  for (const int link : links_) share(link).seen = false;
  for (const int link : changed_) share(link).changed = false;
  for (const std::uint32_t number : affected_) flows_[number].seen = flows_[number].fixed = false;
  changed_.clear();
}

void FairWire::find_neighbours() {
  links_.clear();
  affected_.clear();
  const auto access = [this](int link) {
    if (!std::exchange(share(link).seen, true)) links_.push_back(link);
  };
  for (const int link : changed_) access(link);
  for (std::size_t i = 0; i < links_.size(); ++i)  // NOLINT(modernize-loop-convert): it grows
    for (const User& user : share(links_[i]).users) {
      Flow& flow = flows_[user.flow];
      if (std::exchange(flow.seen, true)) continue;
      affected_.push_back(user.flow);
      for (const int link : flow.path) access(link);
    }
}

void FairWire::fix_rates() {
  for (const int link : links_) {
    share(link).left = topology_.links()[static_cast<std::size_t>(link)].bytes_per_ns;
    share(link).count = static_cast<std::uint32_t>(share(link).users.size());
  }
  std::vector<int> open(links_);
  for (std::size_t fixed = 0; fixed < affected_.size();) {
    std::erase_if(open, [this](int link) { return share(link).count == 0; });
    double least = infinity;
    for (const int link : open) least = std::min(least, share(link).left / share(link).count);
    for (const int link : open) {
      if (share(link).count == 0 || share(link).left / share(link).count > least * (1 + same_share)) continue;
      for (const User& user : share(link).users) {
        Flow& flow = flows_[user.flow];
        if (std::exchange(flow.fixed, true)) continue;
        ++fixed;
        set_rate(user.flow, least);
        for (const int other : flow.path) {
          share(other).left -= least;
          --share(other).count;
        }
      }
    }
  }
}

void FairWire::set_rate(std::uint32_t number, double rate) {
  Flow& flow = flows_[number];
  if (flow.rate == rate) return;
  flow.left = std::max(0.0, flow.left - flow.rate * (now_ - flow.since));
  flow.since = now_;
  flow.rate = rate;
  ends_.push(now_ + flow.left / rate, {number, ++flow.version});
}

}  // namespace

std::unique_ptr<NetworkWire> make_wire(const Topology& topology, Sharing sharing) {
  if (sharing == Sharing::fifo) return make_fifo_wire(topology);
  return std::make_unique<FairWire>(topology);
}

}  // namespace tutti::simulator
