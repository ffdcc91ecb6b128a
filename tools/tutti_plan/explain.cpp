// tutti-plan explain: which algorithm a call would use, why, and its predicted time.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include "algorithms/explain.h"
#include "algorithms/select.h"
#include "tools/tutti_plan/command.h"
#include "tools/tutti_plan/source.h"

namespace tutti::tool {
namespace {

struct Options {
  std::string collective;
  std::uint64_t bytes = 0;
  int ranks = 4;
  int root = 0;
  int cores = 0;
  std::string access = "mapped";
  std::string forced;
};

int explain(const Options& options) {
  const auto collective = collective_of(options.collective);
  if (!collective) return fail(collective.error());
  if (auto known = check_algo_setting(options.forced); !known) return fail(known.error());
  const Shape shape{.collective = *collective, .ranks = options.ranks, .root = options.root};
  if (shape.root >= shape.ranks)
    return fail({.code = Code::invalid_argument,
                 .what = fmt::format("root {} is not one of 0 … {}", shape.root, shape.ranks - 1)});
  const auto access = access_of(options.access);
  if (!access) return fail(access.error());
  const unsigned here = std::max(std::thread::hardware_concurrency(), 1U);
  const Grounds grounds{.machine = {},
                        .conditions = {.cores = options.cores > 0 ? options.cores : static_cast<int>(here)},
                        .forced = options.forced};
  const auto envelope = Envelopes().of(shape, *access, options.forced, grounds.machine, grounds.conditions);
  return put("-", tutti::explain(shape, *access, options.bytes, envelope->at(options.bytes), grounds));
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
  command->add_option("--ranks", options->ranks, "How many ranks [4]")->check(CLI::Range(1, 64));
  command->add_option("--root", options->root, "Root of a broadcast, reduce, gather or scatter [0]")
      ->check(CLI::Range(0, 63));
  command->add_option("--cores", options->cores, "Cores that the ranks have, all together [those of this machine]")
      ->check(CLI::Range(1, 1 << 16));
  command->add_option("--access", options->access, "How ranks reach each other: inline, mapped, cma or slots [mapped]")
      ->check(CLI::IsMember({"inline", "mapped", "cma", "slots"}));
  command->add_option("--algo", options->forced, "What TUTTI_ALGO would be");
  command->final_callback([options, &status] { status = explain(*options); });
}

}  // namespace tutti::tool
