#include "tools/tutti_plan/simulated.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "analysis/simulator/patterns.h"
#include "analysis/simulator/quantity.h"
#include "analysis/simulator/schedule_messages.h"
#include "tools/tutti_plan/source.h"

namespace tutti::tool {
namespace {

using namespace simulator;

constexpr int ranks_usual = 4;
/// Number of chunks of an all-reduce in switches: one per MiB, from 1 to 256.
int chunks_in_switch(double bytes) {
  return static_cast<int>(std::clamp(bytes / (1 << 20), 1.0, 256.0));
}

Error invalid(std::string what) {
  return {.code = Code::invalid_argument, .what = std::move(what)};
}

/// "L,o,g,G,O,S"; trailing values may be missing.
Result<LogGops> parse_loggops(const std::string& text) {
  LogGops p;
  double* const fields[] = {&p.L, &p.o, &p.g, &p.G, &p.O, &p.S};
  std::size_t begin = 0;
  for (double* const field : fields) {
    if (begin > text.size()) break;
    const std::size_t end = std::min(text.find(',', begin), text.size());
    auto value = parse_number(std::string_view(text).substr(begin, end - begin));
    if (!value) return std::move(value).error().during("--loggops");
    *field = *value;
    begin = end + 1;
  }
  if (begin <= text.size()) return invalid(fmt::format("--loggops: \"{}\" is more than L,o,g,G,O,S", text));
  return p;
}

Result<Network> without_links(const NetworkOptions& options, Network network) {
  if (options.model == "loggops") {
    auto parsed = options.loggops.empty() ? LogGops{} : parse_loggops(options.loggops);
    if (!parsed) return std::move(parsed).error();
    network.loggops = *parsed;
    const LogGops& p = *parsed;
    network.text = fmt::format("LogGOPS: L={} o={} g={} G={} O={} S={} ns", p.L, p.o, p.g, p.G, p.O, p.S);
    return network;
  }
  const auto alpha = parse_time(options.alpha);
  if (!alpha) return Error(alpha.error()).during("--alpha");
  const auto rate = parse_rate(options.rate);
  if (!rate) return Error(rate.error()).during("--rate");
  network.uniform = {.alpha_ns = *alpha, .beta_ns_per_byte = 1 / *rate, .ports = options.ports};
  network.text = fmt::format("a uniform network: {:.4g} ns, {:.4g} GB/s, {} port{}", *alpha, *rate, options.ports,
                             options.ports == 1 ? "" : "s");
  return network;
}

bool has_powers_of_two(const Torus& torus) {
  return std::ranges::all_of(torus.sizes(), [](int size) { return std::has_single_bit(static_cast<unsigned>(size)); });
}

bool can_add(const Network& network) {
  const auto single = [](const TreeLevel& level) { return level.links == 1; };
  return network.machine && network.machine->tree && network.machine->in_switch > 0 &&
         std::ranges::all_of(network.machine->tree->tree_levels(), single);
}

/// Null if `name` is not one of these.
std::function<std::unique_ptr<MessageSource>(double)> of_machine(const std::string& name, const Network& network) {
  if (name == "torus_swing" || name == "torus_doubling")
    return [torus = network.machine->torus, swing = name == "torus_swing"](double bytes) {
      return torus_pattern(*torus, swing, bytes);
    };
  if (name == "in_switch" || name == "nvls")
    return [machine = *network.machine, by_owner = name == "nvls"](double bytes) {
      const InSwitch how{.chunks = chunks_in_switch(bytes), .by_owner = by_owner, .wire_bytes = machine.in_switch};
      return in_switch_pattern(*machine.tree, how, bytes);
    };
  return {};
}

}  // namespace

void add_network(CLI::App& command, NetworkOptions& options) {
  command.add_option(
      "--topology", options.topology,
      "switch:8,450GB/s,1us  nodes:4x8,450GB/s,1us,net=50GB/s  fattree:4x16x32,50GB/s  torus:8x8,50GB/s");
  command
      .add_option("--model", options.model,
                  "Of a topology: fair (flows) or fifo (queues); without: uniform or loggops [fair, uniform]")
      ->check(CLI::IsMember({"fair", "fifo", "uniform", "loggops"}));
  command.add_option("--alpha", options.alpha, "uniform: time of an empty message [1us]");
  command.add_option("--rate", options.rate, "uniform: bandwidth of a port [100GB/s]");
  command.add_option("--ports", options.ports, "uniform: messages that a rank sends, or receives, at a time [1]")
      ->check(CLI::Range(1, 1024));
  command.add_option("--loggops", options.loggops, "loggops: L,o,g,G,O,S in ns [2500,1500,1000,6,0]");
  command.add_option("--sums", options.sums, "Rate at which a rank adds up, in bytes of sums [infinite]");
}

int Network::ranks(int otherwise) const {
  if (machine) return machine->topology().ranks();
  return otherwise > 0 ? otherwise : ranks_usual;
}

std::vector<Cut> Network::cuts(int count) const {
  if (machine) return machine->topology().cuts();
  const double rate = loggops ? 1 / std::max(loggops->G, 1e-12) : uniform.ports / uniform.beta_ns_per_byte;
  return {{.groups = count, .bytes_per_ns = rate}};
}

std::unique_ptr<Wire> Network::wire(int endpoints) const {
  if (machine) return make_wire(machine->topology(), sharing);
  if (loggops) return make_wire(*loggops, endpoints);
  return make_wire(uniform, endpoints);
}

Result<Network> make_network(const NetworkOptions& options, int ranks) {
  Network network;
  if (!options.sums.empty()) {
    const auto rate = parse_rate(options.sums);
    if (!rate) return Error(rate.error()).during("--sums");
    network.reduce_ns_per_byte = 1 / *rate;
  }
  const bool has_links = options.model == "fair" || options.model == "fifo";
  if (options.topology.empty() && has_links)
    return invalid(fmt::format("--model {} needs a --topology", options.model));
  if (options.topology.empty()) return without_links(options, std::move(network));
  if (!has_links && !options.model.empty()) return invalid("--topology is for --model fair and fifo");
  auto machine = parse_machine(options.topology, ranks);
  if (!machine) return std::move(machine).error();
  network.machine = *std::move(machine);
  network.sharing = options.model == "fifo" ? Sharing::fifo : Sharing::fair;
  network.text = network.machine->text + (options.model == "fifo" ? "; queues" : "; fair flows");
  return network;
}

std::vector<std::string> machine_algorithms(const Network& network, Collective collective) {
  std::vector<std::string> names;
  if (collective != Collective::all_reduce || !network.machine) return names;
  if (network.machine->torus && has_powers_of_two(*network.machine->torus)) names = {"torus_swing", "torus_doubling"};
  if (can_add(network)) {
    names.push_back("in_switch");
    if (network.machine->tree->tree_levels().size() == 1) names.push_back("nvls");
  }
  return names;
}

Result<Traffic> traffic_of_algorithm(const std::string& name, const Shape& shape, const Network& network) {
  Traffic traffic{.name = name, .collective = shape.collective, .ranks = shape.ranks};
  const std::vector<std::string> special = machine_algorithms(network, shape.collective);
  if (std::ranges::find(special, name) != special.end()) {
    traffic.messages = of_machine(name, network);
    return traffic;
  }
  const Algorithm* const algorithm = name.empty() ? &usual_algorithm(shape) : find_algorithm(name, shape);
  if (algorithm == nullptr) {
    std::string names;
    for (const std::string& one : special) names += " " + one;
    for (const Algorithm& one : algorithms())
      if (one.supports(shape)) names += " " + one.name;
    return invalid(fmt::format("no algorithm \"{}\" for {} of {} ranks on this machine; there are:{}", name,
                               tutti::name(shape.collective), shape.ranks, names));
  }
  if (!pattern(algorithm->name, shape, 1)) return traffic_of_schedule(algorithm->name, algorithm->build(shape));
  traffic.name = algorithm->name;
  traffic.messages = [name = algorithm->name, shape](double bytes) { return pattern(name, shape, bytes); };
  return traffic;
}

Traffic traffic_of_schedule(std::string name, Schedule schedule) {
  Traffic traffic{.name = std::move(name), .collective = schedule.collective(), .ranks = schedule.ranks()};
  traffic.messages = [kept = std::make_shared<Schedule>(std::move(schedule))](double bytes) {
    return messages_of(*kept, bytes);
  };
  return traffic;
}

}  // namespace tutti::tool
