// tutti-plan verify: a schedule's costs and proven properties.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/formats/table.h"
#include "analysis/proof/check.h"
#include "plan/fuse.h"
#include "plan/lower.h"
#include "tools/tutti_plan/command.h"
#include "tools/tutti_plan/source.h"

namespace tutti::tool {
namespace {

constexpr int ranks_checked_max = 64;  // beyond this, checking plans takes minutes
constexpr int slots_tried_max = 8;

std::string fraction(long numerator, long denominator) {
  const long common = std::gcd(numerator, denominator);
  const std::string exact = denominator == common ? fmt::format("{}", numerator / common)
                                                  : fmt::format("{}/{}", numerator / common, denominator / common);
  const double value = static_cast<double>(numerator) / static_cast<double>(denominator);
  return denominator == common ? exact : fmt::format("{} = {:.4g}", exact, value);
}

/// Blocks that leave or reach a rank, as fractions of the largest buffer.
std::string shares(const Schedule& schedule, Rank Transfer::*const end) {
  int groups = 1;
  std::vector<long> blocks(static_cast<std::size_t>(schedule.ranks()));
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    groups = std::max({groups, input_groups(schedule.collective(), schedule.ranks(), rank, schedule.root()),
                       output_groups(schedule.collective(), schedule.ranks(), rank, schedule.root())});
  for (const Transfer& t : schedule.transfers())
    if (t.from != t.to) ++blocks[static_cast<std::size_t>(t.*end)];
  const auto [least, most] = std::ranges::minmax_element(blocks);
  const long whole = static_cast<long>(groups) * schedule.parts();
  if (*least == *most) return fmt::format("{} of the call's bytes by every rank", fraction(*most, whole));
  return fmt::format("{} by rank {} at most, {} by rank {} at least", fraction(*most, whole), most - blocks.begin(),
                     fraction(*least, whole), least - blocks.begin());
}

std::uint64_t order_of(const Meaning& meaning) {
  std::uint64_t all = meaning.order.size();
  for (const std::uint64_t block : meaning.order) all = (all ^ block) * 0x9e3779b97f4a7c15u + (all >> 29);
  return all;
}

std::vector<Plan> plans(const Schedule& schedule, int fused_for_slots) {
  std::vector<Plan> all = lower_all(schedule, Access::slots);
  if (fused_for_slots > 0)
    for (Plan& plan : all) plan = fuse(std::move(plan), fused_for_slots);
  return all;
}

/// The least number of slots for which every mix of ranks in place is proven; -1: none up to slots_tried_max.
int least_slots(const Schedule& schedule, const std::vector<Plan>& all) {
  std::vector<CheckCase> mixes = check_cases(schedule.collective(), schedule.ranks(), Access::slots);
  std::erase_if(mixes, [](const CheckCase& how) { return how.slots != 0; });
  for (int slots = 0; slots <= slots_tried_max; ++slots) {
    const auto proven = [&](CheckCase how) {
      how.slots = slots;
      return static_cast<bool>(check(schedule, all, how));
    };
    if (std::ranges::all_of(mixes, proven)) return slots;
  }
  return -1;
}

std::string slots_text(const Schedule& schedule) {
  if (!lowers_to(schedule, Access::slots)) return "none: slots cannot carry it";
  if (schedule.ranks() > ranks_checked_max) return fmt::format("not checked above {} ranks", ranks_checked_max);
  const auto text = [&](int fused) {
    const int least = least_slots(schedule, plans(schedule, fused));
    return least < 0 ? fmt::format("more than {}", slots_tried_max) : fmt::format("{}", least);
  };
  return fmt::format("at least {} as lowered, {} fused for one, {} fused for two", text(0), text(1), text(2));
}

/// Number of thread blocks that must be resident at once if all ranks run on one processor, with one channel each.
std::string resident_text(const Schedule& schedule) {
  if (schedule.ranks() > ranks_checked_max) return fmt::format("not checked above {} ranks", ranks_checked_max);
  std::string text;
  for (const Access access : {Access::mapped, Access::slots}) {
    if (!lowers_to(schedule, access)) continue;
    const auto needed =
        residency(schedule, lower_all(schedule, access), {.slots = 2, .channels = 1, .tiles = 1, .calls = 1});
    if (!needed) return needed.error().text();
    text += fmt::format("{}{} of {} channels by {}", text.empty() ? "" : ", ", needed->resident, needed->channels,
                        name(access));
  }
  return text.empty() ? "nothing carries it" : text;
}

int run(const Source& source) {
  const auto found = find(source);
  if (!found) return fail(found.error());
  const Schedule& schedule = found->schedule;
  std::string accesses;
  for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
    if (lowers_to(schedule, access)) accesses += fmt::format("{}{}", accesses.empty() ? "" : ", ", name(access));
  std::string text = fmt::format("{}: {}\n", found->title, formats::summary(schedule));
  const auto say = [&](std::string_view what, std::string_view value) {
    text += fmt::format("  {:<11} {}\n", what, value);
  };
  say("meaning", "proven: each output holds the right contributions, each once, in place too");
  if (schedule.collective() != Collective::barrier) {
    say("sent", shares(schedule, &Transfer::from));
    say("received", shares(schedule, &Transfer::to));
  }
  if (reduces(schedule.collective()))
    say("reductions", fmt::format("order {:016x}, {}", order_of(found->meaning),
                                  found->meaning.same_bits ? "the same bits wherever a result is"
                                                           : "NOT the same bits on every rank"));
  say("carried by", accesses.empty() ? "nothing" : accesses);
  say("slots", slots_text(schedule));
  say("resident", resident_text(schedule));
  return put("-", text);
}

}  // namespace

void add_verify(CLI::App& app, int& status) {
  auto source = std::make_shared<Source>();
  CLI::App* const command =
      app.add_subcommand("verify", "Proves a schedule; prints its steps, bytes, order of sums and slots");
  add_source(*command, *source);
  command->footer("Equal orders of two schedules mean equal bits of their results.");
  command->final_callback([source, &status] { status = run(*source); });
}

}  // namespace tutti::tool
