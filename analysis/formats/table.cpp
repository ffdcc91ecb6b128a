#include "analysis/formats/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tutti::formats {
namespace {

/// Transfers of one step between the same two ranks, of one kind, and between the same two buffers.
struct Row {
  int step;
  Rank from, to;
  Kind kind;
  Buffer src, dst;
  auto operator<=>(const Row&) const = default;
};

std::string text(const Place& place) {
  static constexpr std::string_view names[] = {"in", "out", "tmp", "slot", "in", "out", "line"};
  const std::string peer = place.where >= Where::slot ? fmt::format("({})", place.peer) : "";
  return fmt::format("{}{}{}.{}", place.contribution ? "*" : "", names[static_cast<int>(place.where)], peer,
                     place.block);
}

}  // namespace

std::string blocks_text(Buffer buffer, std::vector<int> blocks) {
  static constexpr std::string_view names[] = {"in", "out", "tmp"};
  std::ranges::sort(blocks);
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  std::string text = fmt::format("{}.", names[static_cast<int>(buffer)]);
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t end = i + 1;
    while (end < blocks.size() && blocks[end] == blocks[end - 1] + 1) ++end;
    text += i > 0 ? "," : "";
    text += end - i > 1 ? fmt::format("{}-{}", blocks[i], blocks[end - 1]) : fmt::format("{}", blocks[i]);
    i = end;
  }
  return text;
}

std::string summary(const Schedule& schedule) {
  std::map<std::tuple<int, Rank, Rank>, int> messages;
  for (const Transfer& t : schedule.transfers())
    if (t.from != t.to) ++messages[{t.step, t.from, t.to}];
  std::string text =
      fmt::format("{} of {} rank{}", name(schedule.collective()), schedule.ranks(), schedule.ranks() == 1 ? "" : "s");
  if (rooted(schedule.collective())) text += fmt::format(", root {}", schedule.root());
  const auto count = [](std::size_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  return text + fmt::format(": {}, {}, {}, {}", count(static_cast<std::size_t>(schedule.steps()), "step"),
                            count(messages.size(), "message"),
                            count(static_cast<std::size_t>(schedule.parts()), "part"),
                            count(static_cast<std::size_t>(schedule.scratch_groups()), "scratch group"));
}

std::string table(const Schedule& schedule, std::optional<Rank> rank) {
  std::map<Row, std::pair<std::vector<int>, std::vector<int>>> rows;
  for (const Transfer& t : schedule.transfers()) {
    if (rank && t.from != *rank && t.to != *rank) continue;
    auto& [src, dst] = rows[{t.step, t.from, t.to, t.kind, t.src.buffer, t.dst.buffer}];
    src.push_back(t.src.block);
    dst.push_back(t.dst.block);
  }
  std::string text = fmt::format("{:>5} {:>5} {:>5}  {:<7} {}\n", "step", "from", "to", "", "blocks");
  int step = -1;
  for (const auto& [row, blocks] : rows) {
    const std::string number = row.step == step ? "" : fmt::format("{}", row.step);
    step = row.step;
    text += fmt::format("{:>5} {:>5} {:>5}  {:<7} {} -> {}\n", number, row.from,
                        row.from == row.to ? "own" : fmt::format("{}", row.to),
                        row.kind == Kind::reduce ? "reduce" : "copy", blocks_text(row.src, blocks.first),
                        blocks_text(row.dst, blocks.second));
  }
  return text;
}

std::string table(const Plan& plan) {
  static constexpr std::string_view verbs[] = {"copy",    "reduce", "acquire", "commit", "peek",
                                               "release", "settle", "signal",  "wait",   "wait_descriptor"};
  std::string text = fmt::format("rank {} by {}: {} actions\n{:>5}  action\n", plan.rank, name(plan.access),
                                 plan.actions.size(), "step");
  for (const Action& action : plan.actions) {
    text += fmt::format("{:>5}  {}", action.step, verbs[static_cast<int>(action.verb)]);
    if (action.verb == Verb::copy || action.verb == Verb::reduce) {
      for (const Place& place : plan.sources(action)) text += " " + formats::text(place);
      text += " ->";
      for (const Place& place : plan.destinations(action)) text += " " + formats::text(place);
      if (action.last) text += " last";
    } else {
      text += fmt::format(" {}", action.peer);
      if (action.items > 0) text += fmt::format(" x{}", action.items);
    }
    text += '\n';
  }
  return text;
}

}  // namespace tutti::formats
