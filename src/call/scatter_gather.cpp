#include "call/scatter_gather.h"

#include <algorithm>
#include <ranges>
#include <string_view>

#include <fmt/format.h>

namespace tutti {
namespace {

Result<void> check_list(std::span<const int> list, int ranks, std::string_view name) {
  if (list.empty()) return invalid_argument(fmt::format("{} has no ranks", name));
  std::vector<bool> listed(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0 || list[i] >= ranks)
      return invalid_argument(fmt::format("{}[{}] = {} is not a rank (0 to {})", name, i, list[i], ranks - 1));
    if (listed[static_cast<std::size_t>(list[i])])
      return invalid_argument(fmt::format("{} names rank {} twice", name, list[i]));
    listed[static_cast<std::size_t>(list[i])] = true;
  }
  return {};
}

/// Whether the list has all ranks in order.
bool is_all(std::span<const int> list, int ranks) {
  return std::ranges::equal(list, std::views::iota(0, ranks));
}

}  // namespace

Result<void> check_lists(const ScatterGather& call, int ranks) {
  TUTTI_TRY(check_list(call.sources, ranks, "sources"));
  TUTTI_TRY(check_list(call.destinations, ranks, "destinations"));
  if (call.unit > call.total || (call.unit > 0 && call.total % call.unit != 0))
    return invalid_argument(fmt::format("unitcount {} does not divide totalcount {}", call.unit, call.total));
  return {};
}

std::optional<Amounts> amounts_to(const ScatterGather& call, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const bool whole = call.unit == call.total;  // all destinations get the same
  const bool spread = call.unit > 0 && call.total % n == 0 && call.total / n == call.unit;  // each gets its own unit
  const bool from_all = is_all(call.sources, ranks), to_all = is_all(call.destinations, ranks);
  if (from_all && to_all && whole) return Amounts{Collective::all_gather, call.unit, 0};
  if (from_all && to_all && spread) return Amounts{Collective::all_to_all, call.unit, 0};
  if (from_all && call.destinations.size() == 1) return Amounts{Collective::gather, call.unit, call.destinations[0]};
  if (to_all && call.sources.size() == 1 && whole) return Amounts{Collective::broadcast, call.unit, call.sources[0]};
  if (to_all && call.sources.size() == 1 && spread) return Amounts{Collective::scatter, call.unit, call.sources[0]};
  return std::nullopt;
}

Exchanged exchanged(const ScatterGather& call, Rank rank, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  Exchanged all{.send_counts = std::vector<std::size_t>(n),
                .send_at = std::vector<std::size_t>(n),
                .recv_counts = std::vector<std::size_t>(n),
                .recv_at = std::vector<std::size_t>(n)};
  const std::size_t units = call.unit == 0 ? 1 : call.total / call.unit;
  if (std::ranges::find(call.sources, rank) != call.sources.end())
    for (std::size_t j = 0; j < call.destinations.size(); ++j) {
      const auto to = static_cast<std::size_t>(call.destinations[j]);
      all.send_counts[to] = call.unit;
      all.send_at[to] = j % units * call.unit;
    }
  if (std::ranges::find(call.destinations, rank) != call.destinations.end())
    for (std::size_t k = 0; k < call.sources.size(); ++k) {
      const auto from = static_cast<std::size_t>(call.sources[k]);
      all.recv_counts[from] = call.unit;
      all.recv_at[from] = k * call.unit;
    }
  return all;
}

std::uint32_t fingerprint(const ScatterGather& call) {
  std::uint64_t hash = call.total * 0x9e3779b97f4a7c15u;
  const auto add = [&hash](int word) {
    hash = (hash ^ static_cast<std::uint32_t>(word + 1)) * 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 29;
  };
  for (const int rank : call.sources) add(rank);
  add(-1);
  for (const int rank : call.destinations) add(rank);
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace tutti
