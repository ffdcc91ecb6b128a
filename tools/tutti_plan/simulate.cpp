// tutti-plan simulate: how long collectives take on a simulated machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "analysis/simulator/bound.h"
#include "analysis/simulator/quantity.h"
#include "base/limits.h"
#include "formats/source.h"
#include "tools/tutti_plan/command.h"
#include "tools/tutti_plan/simulated.h"
#include "tools/tutti_plan/source.h"

namespace tutti::tool {
namespace {

using namespace simulator;

struct Options {
  std::string source;
  std::string sizes = "1MiB";
  std::string algo;
  int ranks = 0;
  int root = 0;
  NetworkOptions network;
  bool csv = false;
  bool steps = false;
  int links = 0;
};

/// The result for one algorithm and one size.
struct Row {
  std::string algorithm;
  double bytes = 0;
  Collective collective = Collective::all_reduce;
  int ranks = 0;
  Outcome outcome;
  double least_ns = 0;
  std::vector<double> carried;

  double algbw() const { return outcome.time_ns > 0 ? bytes / outcome.time_ns : 0; }
  double busbw() const { return algbw() * bus_factor(collective, ranks); }
  std::string congestion() const { return least_ns > 0 ? fmt::format("{:.3f}", outcome.time_ns / least_ns) : "-"; }
};

std::string time_text(double ns) {
  if (ns < 1e4) return fmt::format("{:.5g} ns", ns);
  if (ns < 1e7) return fmt::format("{:.5g} us", ns / 1e3);
  return ns < 1e10 ? fmt::format("{:.5g} ms", ns / 1e6) : fmt::format("{:.5g} s", ns / 1e9);
}

std::string size_text(double bytes) {
  for (const auto& [unit, factor] : {std::pair("GiB", 1024.0 * 1024 * 1024), {"MiB", 1024.0 * 1024}, {"KiB", 1024.0}})
    if (bytes >= factor && std::fmod(bytes, factor) == 0) return fmt::format("{:.0f} {}", bytes / factor, unit);
  return fmt::format("{:.0f} B", bytes);
}

Result<std::vector<double>> parse_sizes(const std::string& text) {
  std::vector<double> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    auto size = parse_bytes(std::string_view(text).substr(begin, end - begin));
    if (!size) return std::move(size).error();
    sizes.push_back(*size);
    begin = end + 1;
  }
  return sizes;
}

std::vector<std::string> names_of(const Options& options, const Network& network, const Shape& shape) {
  if (options.algo != "all") return {options.algo};
  std::vector<std::string> names = machine_algorithms(network, shape.collective);
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.supports(shape)) names.push_back(algorithm.name);
  return names;
}

Result<Row> play(const Traffic& traffic, const Network& network, double bytes) {
  Row row{.algorithm = traffic.name, .bytes = bytes, .collective = traffic.collective, .ranks = traffic.ranks};
  const auto messages = traffic.messages(bytes);
  const auto wire = network.wire(messages->endpoints());
  row.outcome = simulate(*messages, *wire, network.reduce_ns_per_byte, traffic.ranks);
  row.least_ns = least_time_ns(row.collective, row.ranks, bytes, network.cuts(row.ranks));
  if (const auto* links = dynamic_cast<const NetworkWire*>(wire.get())) row.carried = links->carried();
  return row;
}

std::string csv(const std::vector<Row>& rows) {
  std::string text = "collective,algorithm,ranks,bytes,steps,messages,time_ns,algbw_gbps,busbw_gbps,congestion\n";
  for (const Row& row : rows)
    text += fmt::format("{},{},{},{:.0f},{},{},{:.3f},{:.6g},{:.6g},{}\n", name(row.collective), row.algorithm,
                        row.ranks, row.bytes, row.outcome.steps.size(), row.outcome.messages, row.outcome.time_ns,
                        row.algbw(), row.busbw(), row.congestion());
  return text;
}

std::string steps_csv(const Row& row) {
  std::string text = "step,begin_ns,end_ns,messages,bytes\n";
  for (std::size_t step = 0; step < row.outcome.steps.size(); ++step) {
    const StepOutcome& s = row.outcome.steps[step];
    text += fmt::format("{},{:.3f},{:.3f},{},{:.0f}\n", step, s.begin_ns, s.end_ns, s.messages, s.bytes);
  }
  return text;
}

std::string table(const std::vector<Row>& rows) {
  std::string text = fmt::format("{:<24} {:>10} {:>6} {:>10} {:>12} {:>9} {:>9} {:>10}\n", "algorithm", "size", "steps",
                                 "messages", "time", "algbw", "busbw", "congestion");
  for (const Row& row : rows)
    text += fmt::format("{:<24} {:>10} {:>6} {:>10} {:>12} {:>9.4g} {:>9.4g} {:>10}\n", row.algorithm,
                        size_text(row.bytes), row.outcome.steps.size(), row.outcome.messages,
                        time_text(row.outcome.time_ns), row.algbw(), row.busbw(), row.congestion());
  return text;
}

std::string steps_table(const Row& row) {
  std::string text = fmt::format("\n{:>6} {:>12} {:>12} {:>10} {:>12}\n", "step", "begin", "end", "messages", "sent");
  for (std::size_t step = 0; step < row.outcome.steps.size(); ++step) {
    const StepOutcome& s = row.outcome.steps[step];
    text += fmt::format("{:>6} {:>12} {:>12} {:>10} {:>12.6g}\n", step, time_text(s.begin_ns), time_text(s.end_ns),
                        s.messages, s.bytes);
  }
  return text;
}

std::string links_table(const Row& row, const Topology& topology, int count) {
  std::vector<int> order(row.carried.size());
  std::iota(order.begin(), order.end(), 0);
  const auto busy = [&](int link) {
    const auto at = static_cast<std::size_t>(link);
    return row.carried[at] / topology.links()[at].bytes_per_ns;
  };
  const std::size_t shown = std::min(order.size(), static_cast<std::size_t>(count));
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(shown);
  std::ranges::partial_sort(order, end, [&](int a, int b) { return std::pair(-busy(a), a) < std::pair(-busy(b), b); });
  std::string text = fmt::format("\n{:<40} {:>12} {:>6}\n", "busiest links", "carried", "busy");
  for (auto link = order.begin(); link != end; ++link)
    text += fmt::format("{:<40} {:>12.6g} {:>5.1f}%\n", topology.link_name(*link),
                        row.carried[static_cast<std::size_t>(*link)], 100 * busy(*link) / row.outcome.time_ns);
  return text;
}

std::string report(const std::vector<Row>& rows, const Options& options, const Network& network) {
  const bool one = rows.size() == 1;
  if (options.csv) return one && options.steps ? steps_csv(rows[0]) : csv(rows);
  std::string text = fmt::format("{} of {} ranks on {}\n", name(rows[0].collective), rows[0].ranks, network.text);
  text += table(rows);
  if (one && options.steps) text += steps_table(rows[0]);
  if (one && options.links > 0 && network.machine)
    text += links_table(rows[0], network.machine->topology(), options.links);
  return text;
}

/// The schedules or patterns to simulate: the one in a file, or those of the named algorithms.
Result<std::vector<Traffic>> traffic_of(const Options& options, const Network& network) {
  std::vector<Traffic> all;
  const auto collective = collective_of(options.source);
  if (!collective) {
    auto found = find({.name = options.source, .root = options.root});
    if (!found) return std::move(found).error();
    all.push_back(traffic_of_schedule(found->title, std::move(found->schedule)));
    return all;
  }
  Shape shape{.collective = *collective, .ranks = network.ranks(options.ranks), .root = options.root};
  if (shape.root >= shape.ranks)
    return Error{.code = Code::invalid_argument,
                 .what = fmt::format("root {} is not one of 0 … {}", shape.root, shape.ranks - 1)};
  if (network.machine) shape.levels = network.machine->topology().levels();
  if (options.algo == "all" && shape.ranks > formats::ranks_max)
    return Error{.code = Code::invalid_argument,
                 .what = fmt::format("all algorithms are for {} ranks at most: name one", formats::ranks_max)};
  for (const std::string& algo : names_of(options, network, shape)) {
    auto traffic = traffic_of_algorithm(algo, shape, network);
    if (!traffic) return std::move(traffic).error();
    all.push_back(*std::move(traffic));
  }
  return all;
}

int run(const Options& options) {
  const auto sizes = parse_sizes(options.sizes);
  if (!sizes) return fail(sizes.error());
  const auto network = make_network(options.network, options.ranks);
  if (!network) return fail(network.error());
  const auto traffic = traffic_of(options, *network);
  if (!traffic) return fail(traffic.error());
  std::vector<Row> rows;
  for (const double bytes : *sizes) {
    const auto first = static_cast<std::ptrdiff_t>(rows.size());
    for (const Traffic& one : *traffic) {
      if (const int ranks = network->ranks(one.ranks); ranks != one.ranks)
        return fail({.code = Code::invalid_argument,
                     .what = fmt::format("{} has {} ranks, the machine {}", one.name, one.ranks, ranks)});
      auto row = play(one, *network, bytes);
      if (!row) return fail(row.error());
      rows.push_back(*std::move(row));
    }
    std::stable_sort(rows.begin() + first, rows.end(),
                     [](const Row& a, const Row& b) { return a.outcome.time_ns < b.outcome.time_ns; });
  }
  return put("-", report(rows, options, *network));
}

}  // namespace

void add_simulate(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand("simulate", "How long a collective takes on a machine of any size");
  command
      ->add_option("source", options->source,
                   "A collective (all_reduce, broadcast, …), or a file: MSCCL XML, MSCCL++ JSON")
      ->required();
  command->add_option("size", options->sizes, "Of the call, the largest buffer of a rank; several: 1KiB,1MiB [1MiB]");
  command->add_option("--algo", options->algo,
                      "Algorithm, all, or one of the machine: torus_swing, in_switch, … [what a call would use]");
  command->add_option("--ranks", options->ranks, "How many ranks [4, or as many as the topology has]")
      ->check(CLI::Range(1, limits::ranks_max));
  command->add_option("--root", options->root, "Root of a broadcast, reduce, gather or scatter [0]")
      ->check(CLI::NonNegativeNumber);
  add_network(*command, options->network);
  command->add_flag("--csv", options->csv, "Comma-separated values");
  command->add_flag("--steps", options->steps, "Each step, of one algorithm and size");
  command->add_option("--links", options->links, "Number of the busiest links to list, of one algorithm and size [0]")
      ->check(CLI::NonNegativeNumber);
  command->footer(
      "Bandwidths are in GB/s, congestion is the time divided by the time that the narrowest cut needs. See "
      "docs/simulator.md.");
  command->final_callback([options, &status] { status = run(*options); });
}

}  // namespace tutti::tool
