// tutti-plan explain: which algorithm a call would use, why, and its predicted time.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "choice/explain.h"
#include "choice/select.h"
#include "place/job_file.h"
#include "tools/tutti_plan/command.h"
#include "tools/tutti_plan/recorded_rates.h"
#include "tools/tutti_plan/source.h"
#include "topology/sources/detect.h"

namespace tutti::tool {
namespace {

constexpr int ranks_max = limits::ranks_max;

struct Options {
  std::string collective;
  std::uint64_t bytes = 0;
  int ranks = 4;
  int root = 0;
  int cores = 0;
  std::string access;
  std::string forced;
  std::string machine;
  int hosts = 0;
  int each = 0;  ///< ranks of a host

  bool places() const { return !machine.empty() || hosts > 0 || each > 0; }
  int ranks_in_all() const { return places() ? std::max(hosts, 1) * (each > 0 ? each : ranks) : ranks; }
};

/// What a start of such a job finds out; empty where nothing was said of its machine.
struct Found {
  std::string text;
  std::vector<int> hosts;  ///< as Conditions::hosts
  Machine rates;           ///< of the links of a recorded machine
  std::vector<double> pair_gbps;
};

/// By the code that a communicator's start runs.
Result<JobMap> map_of(const Options& options, const PlannedJob& planned, Found& found) {
  if (options.machine.empty()) return tutti::map_of(planned, nullptr);
  const auto machine = topology::detect({.file = options.machine, .nvml = false});
  if (!machine) return Error(machine.error()).during("read --machine");
  found.rates = rates_of(*machine, planned.ranks_per_host);
  return tutti::map_of(planned, &*machine);
}

Result<Found> find_places(const Options& options, Shape& shape) {
  Found found;
  if (!options.places()) return found;
  const int hosts = std::max(options.hosts, 1);
  const PlannedJob planned{.hosts = hosts, .ranks_per_host = options.ranks_in_all() / hosts};
  auto map = map_of(options, planned, found);
  if (!map) return std::move(map).error();
  found.text = fmt::format("Ranks: {}.\n", text_of(*map));
  if (options.hosts > 1) {
    found.hosts = hosts_of(planned);
    found.text += "Pairs: of one host by shared memory, where blocks stay in mapped buffers; others by sockets.\n";
  }
  for (const std::uint32_t mbps : map->pair_mbps) found.pair_gbps.push_back(mbps * 1e-3);
  shape.levels = std::move(map->levels);
  shape.order = std::move(map->order);
  shape.rings = std::move(map->rings);
  return found;
}

int explain(const Options& options) {
  const auto collective = collective_of(options.collective);
  if (!collective) return fail(collective.error());
  if (auto known = check_algo_setting(options.forced); !known) return fail(known.error());
  Shape shape{.collective = *collective, .ranks = options.ranks_in_all(), .root = options.root};
  if (shape.root >= shape.ranks)
    return fail({.code = Code::invalid_argument,
                 .what = fmt::format("root {} is not one of 0 … {}", shape.root, shape.ranks - 1)});
  if (shape.ranks > ranks_max)
    return fail({.code = Code::invalid_argument,
                 .what = fmt::format("{} ranks, at most {} are explained", shape.ranks, ranks_max)});
  const auto access = access_of(!options.access.empty() ? options.access : options.hosts > 1 ? "slots" : "mapped");
  if (!access) return fail(access.error());
  if (options.hosts > 1 && *access != Access::slots)
    return fail({.code = Code::invalid_argument,
                 .what = fmt::format("ranks of several hosts send messages: --access slots, not {}", options.access)});
  const auto found = find_places(options, shape);
  if (!found) return fail(found.error());
  const unsigned here = std::max(std::thread::hardware_concurrency(), 1U);
  const Grounds grounds{.machine = found->rates,
                        .conditions = {.cores = options.cores > 0  ? options.cores
                                                : options.places() ? shape.ranks
                                                                   : static_cast<int>(here),
                                       .slots = options.hosts > 1 ? 3 : 4,  // the mark of a call takes one
                                       .hosts = found->hosts,
                                       .pair_gbps = found->pair_gbps},
                        .forced = options.forced};
  const auto envelope = Envelopes().of(shape, *access, options.forced, grounds.machine, grounds.conditions);
  return put("-", found->text + tutti::explain(shape, *access, options.bytes, envelope->at(options.bytes), grounds));
}

}  // namespace

void add_explain(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("explain", "Candidates for a call, their predicted times, and which one is used and why");
  command->add_option("collective", options->collective, "all_reduce, broadcast, …")->required();
  command->add_option("bytes", options->bytes, "Of the largest buffer of one rank: 4096, 64K, 1MB")
      ->required()
      ->transform(CLI::AsSizeValue(false));
  command->add_option("--ranks", options->ranks, "How many ranks [4]")->check(CLI::Range(1, ranks_max));
  command->add_option("--root", options->root, "Root of a broadcast, reduce, gather or scatter [0]")
      ->check(CLI::Range(0, ranks_max - 1));
  command
      ->add_option(
          "--cores", options->cores,
          "Cores that the ranks have, all together [those of this machine; one per rank with --machine or --hosts]")
      ->check(CLI::Range(1, 1 << 16));
  command
      ->add_option("--access", options->access,
                   "How ranks reach each other: inline, mapped, cma or slots [mapped; slots with --hosts]")
      ->check(CLI::IsMember({"inline", "mapped", "cma", "slots"}));
  command->add_option(
      "--machine", options->machine,
      "Recorded machine, as TUTTI_TOPO_FILE: each host is one; its GPUs or NUMA nodes are the ranks' places");
  command->add_option("--hosts", options->hosts, "How many hosts [1]")->check(CLI::Range(1, ranks_max));
  command->add_option("--ranks-per-host", options->each, "How many ranks each host has [--ranks]")
      ->check(CLI::Range(1, ranks_max));
  command->add_option("--algo", options->forced, "What TUTTI_ALGO would be");
  command->final_callback([options, &status] { status = explain(*options); });
}

}  // namespace tutti::tool
