// tutti-plan show and svg: a schedule as a table, as the actions of a rank, as a picture.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "analysis/formats/svg.h"
#include "analysis/formats/table.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "tools/tutti_plan/command.h"
#include "tools/tutti_plan/source.h"

namespace tutti::tool {
namespace {

struct Options {
  Source source;
  std::optional<int> rank;
  std::string access;
  bool as_lowered = false;
  std::string output = "-";
};

int show_plan(const Schedule& schedule, const Options& options) {
  const auto access = access_of(options.access);
  if (!access) return fail(access.error());
  if (!lowers_to(schedule, *access))
    return fail(
        {.code = Code::invalid_argument, .what = fmt::format("this schedule cannot be carried by {}", options.access)});
  Plan plan = lower(schedule, options.rank.value_or(0), *access);
  if (!options.as_lowered) plan = fuse(std::move(plan));
  return put("-", formats::table(plan));
}

int show(const Options& options) {
  const auto found = find(options.source);
  if (!found) return fail(found.error());
  const Schedule& schedule = found->schedule;
  if (options.rank.value_or(0) >= schedule.ranks())
    return fail({.code = Code::invalid_argument,
                 .what = fmt::format("rank {} is not one of 0 … {}", *options.rank, schedule.ranks() - 1)});
  if (const int status = put("-", fmt::format("{}: {}\n", found->title, formats::summary(schedule)));
      status != Exit::ok)
    return status;
  if (!options.access.empty()) return show_plan(schedule, options);
  return put("-", formats::table(schedule, options.rank));
}

int svg(const Options& options) {
  const auto found = find(options.source);
  if (!found) return fail(found.error());
  const auto picture =
      formats::draw(found->schedule, fmt::format("{}: {}", found->title, formats::summary(found->schedule)));
  return picture ? put(options.output, *picture) : fail(picture.error());
}

}  // namespace

void add_show(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* const table = app.add_subcommand("show", "A schedule as a table, or the plan of one rank");
  add_source(*table, options->source);
  table->add_option("--rank", options->rank, "Only what this rank takes part in; with --plan, whose plan [0]")
      ->check(CLI::NonNegativeNumber);
  table
      ->add_option("--plan", options->access,
                   "The actions of a rank, its peers reached by inline, mapped, cma or slots")
      ->check(CLI::IsMember({"inline", "mapped", "cma", "slots"}));
  table->add_flag("--as-lowered", options->as_lowered, "With --plan: before passes are fused");
  table->final_callback([options, &status] { status = show(*options); });

  auto drawing = std::make_shared<Options>();
  CLI::App* const picture = app.add_subcommand("svg", "A schedule as a picture: ranks down, steps across");
  add_source(*picture, drawing->source);
  picture->add_option("-o,--output", drawing->output, "File to write [standard output]");
  picture->final_callback([drawing, &status] { status = svg(*drawing); });
}

}  // namespace tutti::tool
