#include "analysis/simulator/loggops.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "analysis/simulator/event_queue.h"

namespace tutti::simulator {
namespace {

class LogGopsWire : public Wire {
 public:
  LogGopsWire(const LogGops& network, int endpoints) : p_(network), hosts_(static_cast<std::size_t>(endpoints)) {}

  std::optional<double> send(const Message& message, double at) override {
    if (message.bytes <= p_.S) return leave(message, at);
    Host& receiver = host(message.to);
    if (receiver.step >= message.step)
      leave(message, std::max(at, receiver.entered + p_.o + p_.L));
    else
      receiver.held.emplace_back(&message, at);
    return {};
  }

  void enter(Rank rank, int step, double at) override {
    Host& entered = host(rank);
    entered.step = step;
    entered.entered = at;
    entered.processor = std::max(entered.processor, at);
    std::vector<std::pair<const Message*, double>> held = std::exchange(entered.held, {});
    for (const auto& [message, since] : held)
      if (message->step <= step)
        leave(*message, std::max(since, at + p_.o + p_.L));
      else
        entered.held.emplace_back(message, since);
  }

  bool advance(std::vector<Delivery>& deliveries) override {
    if (arrivals_.empty()) return false;
    const double now = arrivals_.next();
    const Message* const message = arrivals_.pop();
    Host& receiver = host(message->to);
    const double free = std::max(receiver.processor, receiver.receiving);
    if (free > now) {
      arrivals_.push(free, message);
      return true;
    }
    const double rest = rest_of(*message);
    receiver.processor = now + p_.o + rest * std::max(p_.O, p_.G);
    receiver.receiving = now + p_.g + rest * p_.G;
    const double sent = message->bytes <= p_.S ? -1 : receiver.processor;
    deliveries.push_back({message, sent, receiver.processor});
    return true;
  }

 private:
  struct Host {
    double processor = 0;  // free from this time on; likewise the two sides of the interface
    double sending = 0;
    double receiving = 0;
    int step = -1;
    double entered = 0;
    std::vector<std::pair<const Message*, double>> held = {};  // until the receiver enters the step
  };

  Host& host(Rank rank) { return hosts_[static_cast<std::size_t>(rank)]; }
  static double rest_of(const Message& message) { return std::max(message.bytes, 1.0) - 1; }

  double leave(const Message& message, double at) {
    Host& sender = host(message.from);
    const double rest = rest_of(message);
    const double begin = std::max({at, sender.processor, sender.sending});
    sender.processor = begin + p_.o + rest * p_.O;
    sender.sending = begin + p_.g + rest * p_.G;
    arrivals_.push(begin + p_.o + p_.L, &message);
    return sender.processor;
  }

  LogGops p_;
  std::vector<Host> hosts_;
  EventQueue<const Message*> arrivals_;
};

}  // namespace

std::unique_ptr<Wire> make_wire(const LogGops& network, int endpoints) {
  return std::make_unique<LogGopsWire>(network, endpoints);
}

}  // namespace tutti::simulator
