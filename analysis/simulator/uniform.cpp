#include "analysis/simulator/uniform.h"

#include <algorithm>
#include <span>
#include <vector>

#include "analysis/simulator/event_queue.h"

namespace tutti::simulator {
namespace {

class UniformWire : public Wire {
 public:
  UniformWire(const Uniform& network, int endpoints)
      : network_(network), free_(static_cast<std::size_t>(endpoints) * 2 * static_cast<std::size_t>(network.ports)) {}

  std::optional<double> send(const Message& message, double at) override {
    heads_.push(take(message.from, 0, at, message) + network_.alpha_ns, &message);
    return {};
  }

  bool advance(std::vector<Delivery>& deliveries) override {
    if (heads_.empty()) return false;
    const double head = heads_.next();
    const Message* const message = heads_.pop();
    const double received = take(message->to, 1, head, *message) + message->bytes * network_.beta_ns_per_byte;
    deliveries.push_back({message, received, received});
    return true;
  }

 private:
  /// The time at which the port that is free first begins with the message.
  double take(Rank rank, std::size_t side, double at, const Message& message) {
    const auto count = static_cast<std::size_t>(network_.ports);
    const std::span<double> ports(&free_[(static_cast<std::size_t>(rank) * 2 + side) * count], count);
    double& port = *std::ranges::min_element(ports);
    const double begin = std::max(at, port);
    port = begin + message.bytes * network_.beta_ns_per_byte;
    return begin;
  }

  Uniform network_;
  std::vector<double> free_;  // [(endpoint · 2 + side) · ports + port]: time since when it is free
  EventQueue<const Message*> heads_;
};

}  // namespace

std::unique_ptr<Wire> make_wire(const Uniform& network, int endpoints) {
  return std::make_unique<UniformWire>(network, endpoints);
}

}  // namespace tutti::simulator
