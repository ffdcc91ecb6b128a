// Messages that queue at every link.
#include <algorithm>
#include <cstddef>

#include "analysis/simulator/event_queue.h"
#include "analysis/simulator/network.h"

namespace tutti::simulator {
namespace {

class FifoWire : public NetworkWire {
 public:
  explicit FifoWire(const Topology& topology) : NetworkWire(topology), free_(topology.links().size()) {}

  std::optional<double> send(const Message& message, double at) override {
    if (idle_.empty()) {
      idle_.push_back(static_cast<std::uint32_t>(flights_.size()));
      flights_.emplace_back();
    }
    const std::uint32_t number = idle_.back();
    idle_.pop_back();
    Flight& flight = flights_[number];
    topology_.route(message.from, message.to, flight.path);
    flight = {.message = &message, .path = std::move(flight.path), .tail = at};
    heads_.push(at, number);
    return {};
  }

  bool advance(std::vector<Delivery>& deliveries) override {
    if (heads_.empty()) return false;
    const double now = heads_.next();
    const std::uint32_t number = heads_.pop();
    Flight& flight = flights_[number];
    const auto link = static_cast<std::size_t>(flight.path[flight.hop]);
    const auto [rate, latency] = topology_.links()[link];
    const double begin = std::max(now, free_[link]), bytes = flight.message->bytes;
    // The tail cannot leave this link before it has left a slower one upstream.
    flight.tail = free_[link] = std::max(begin + bytes / rate, flight.tail);
    carried_[link] += bytes;
    if (flight.hop == 0) flight.sent = flight.tail;
    flight.tail += latency;
    if (++flight.hop < flight.path.size()) {
      heads_.push(begin + latency, number);
      return true;
    }
    deliveries.push_back({flight.message, flight.sent, flight.tail});
    idle_.push_back(number);
    return true;
  }

 private:
  struct Flight {
    const Message* message = nullptr;
    std::vector<int> path = {};
    std::size_t hop = 0;
    double tail = 0;  // when the last byte arrives at the link
    double sent = 0;
  };

  std::vector<double> free_;  // by link: time since when it is free
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> idle_;
  EventQueue<std::uint32_t> heads_;
};

}  // namespace

std::unique_ptr<NetworkWire> make_fifo_wire(const Topology& topology) {
  return std::make_unique<FifoWire>(topology);
}

}  // namespace tutti::simulator
