// tutti-plan list: the available algorithms.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "algorithms/algorithm.h"
#include "tools/tutti_plan/command.h"
#include "tools/tutti_plan/source.h"

namespace tutti::tool {
namespace {

constexpr int ranks_tried = 17;

std::vector<Algorithm> members(const Family& family) {
  std::vector<Algorithm> all;
  std::ranges::copy_if(algorithms(), std::back_inserter(all), [&](const Algorithm& a) { return a.family == &family; });
  return all;
}

bool supports(const Family& family, Collective collective, int ranks) {
  return std::ranges::any_of(members(family), [&](const Algorithm& algorithm) {
    return algorithm.supports({.collective = collective, .ranks = ranks});
  });
}

/// "2 4 8 16" or "3-17" if the algorithm does not support every number of ranks.
std::string ranks_of(const Family& family, Collective collective) {
  std::string some;
  for (int first = 2; first <= ranks_tried; ++first) {
    if (!supports(family, collective, first)) continue;
    int last = first;
    while (last < ranks_tried && supports(family, collective, last + 1)) ++last;
    if (first == 2 && last == ranks_tried) return "any";
    some += fmt::format("{}{}", some.empty() ? "" : " ", first);
    if (last > first) some += fmt::format("-{}", last);
    first = last;
  }
  return some.empty() ? "1" : some;
}

std::string line(const Family& family) {
  std::string parameter;
  for (const int value : family.values) parameter += fmt::format("{}{}", parameter.empty() ? "" : ",", value);
  if (!parameter.empty()) parameter = fmt::format("{}={}", family.parameter, parameter);
  std::string collectives, ranks;
  for (int i = 0; i < collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    const std::string able = ranks_of(family, collective);
    if (able == "1" && !supports(family, collective, 1)) continue;
    if (able != ranks && !ranks.empty()) collectives += fmt::format(" ({} ranks);", ranks);
    ranks = able;
    collectives += fmt::format("{}{}", collectives.empty() ? "" : " ", name(collective));
  }
  if (ranks != "any") collectives += fmt::format(" ({} rank{})", ranks, ranks == "1" ? "" : "s");
  return fmt::format("{:<28} {:<18} {}\n", family.name, parameter.empty() ? "-" : parameter, collectives);
}

}  // namespace

void add_list(CLI::App& app, int& status) {
  CLI::App* const command = app.add_subcommand("list", "Algorithms: name, parameter, collectives and numbers of ranks");
  command->footer(
      fmt::format("A member of a family with a parameter is named like k_nomial/4. Where some numbers of ranks do not "
                  "do, those up\nto {} that do are listed.",
                  ranks_tried));
  command->final_callback([&status] {
    std::string text = fmt::format("{:<28} {:<18} {}\n", "algorithm", "parameter", "collectives");
    for (const Family* family : families()) text += line(*family);
    status = put("-", text);
  });
}

}  // namespace tutti::tool
