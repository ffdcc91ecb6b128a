#include "job.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/limits.h"
#include "place/job_file.h"

namespace {

using namespace tutti;
using topology::DeviceKind;

Error refused(std::string what) {
  return {.code = Code::invalid_argument, .what = std::move(what)};
}

/// "0,2,1,3", each of `count` ranks once.
Result<std::vector<Rank>> ranks_in(const std::string& option, const std::string& text, int count) {
  std::vector<Rank> ranks;
  std::vector<bool> named(static_cast<std::size_t>(count), false);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.empty() || word.size() > 5 || word.find_first_not_of("0123456789") != std::string::npos)
      return refused(fmt::format("{}: \"{}\" is not a rank", option, word));
    const int rank = std::stoi(word);
    if (rank >= count) return refused(fmt::format("{}: rank {} is not one of 0 … {}", option, rank, count - 1));
    if (named[static_cast<std::size_t>(rank)]) return refused(fmt::format("{}: rank {} occurs twice", option, rank));
    named[static_cast<std::size_t>(rank)] = true;
    ranks.push_back(rank);
    at = end + 1;
  }
  if (const auto missing = std::ranges::find(named, false); missing != named.end())
    return refused(fmt::format("{}: rank {} is missing", option, missing - named.begin()));
  return ranks;
}

/// The ranks in the order in which they fill the hosts; empty: by number.
Result<std::vector<Rank>> filling_of(const JobOptions& options, int each) {
  const int count = options.hosts * each;
  if (options.order == "block") return std::vector<Rank>{};
  if (options.order != "round_robin") return ranks_in("--order " + options.order, options.order, count);
  std::vector<Rank> filling;
  for (int host = 0; host < options.hosts; ++host)
    for (int nth = 0; nth < each; ++nth) filling.push_back(nth * options.hosts + host);
  return filling;
}

}  // namespace

Result<topology::Job> planned_job(const JobOptions& options, const topology::Topology& machine) {
  const std::size_t places = std::max(
      machine.gpus().empty() ? machine.of_kind(DeviceKind::numa).size() : machine.gpus().size(), std::size_t{1});
  const int each = options.ranks_per_host > 0 ? options.ranks_per_host : static_cast<int>(places);
  if (options.hosts > limits::ranks_max / each)
    return refused(
        fmt::format("{} hosts with {} ranks each: a job has at most {} ranks", options.hosts, each, limits::ranks_max));
  auto filling = filling_of(options, each);
  if (!filling) return std::move(filling).error();
  topology::Job job =
      job_of(PlannedJob{.hosts = options.hosts, .ranks_per_host = each, .filling = *std::move(filling)}, machine);
  if (options.ring == "number") {
    std::iota(job.order.begin(), job.order.end(), 0);
    job.rings.clear();
  } else if (!options.ring.empty()) {
    auto order = ranks_in("--ring " + options.ring, options.ring, options.hosts * each);
    if (!order) return std::move(order).error();
    job.order = *std::move(order);
    job.rings.clear();
  }
  return job;
}
