#include "submit/explain_call.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "call/access.h"
#include "choice/explain.h"
#include "comm/given_up_rights.h"

namespace tutti {
namespace {

std::string plain(std::string_view word) {
  std::string result;
  for (const char c : word)
    if (c != '_') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// The text on device memory; empty if the communicator has no GPU.
std::string device_memory(const Communicator& communicator) {
  const DeviceSide* const device = communicator.device();
  return device == nullptr ? std::string() : fmt::format("\nDevice memory: {}.\n", device->explain());
}

}  // namespace

std::string explain_call(Communicator& communicator, Collective collective, std::size_t group_bytes) {
  const Shape shape = communicator.members().with_levels(
      {.collective = collective, .ranks = communicator.ranks(), .root = 0, .levels = {}});
  const CallSize size(collective, shape.ranks, shape.root, group_bytes);
  const AccessFacts facts = communicator.plans().access_facts();
  const JobMap& map = communicator.members().map;
  const std::string ranks = map == JobMap{} ? "" : fmt::format("Ranks: {}.\n", text_of(map));
  const auto by = [&](Access access) {
    const Algorithm& used = communicator.plans().algorithm(shape, access, size.choice_bytes(), false);
    return explain(shape, access, size.choice_bytes(), used,
                   {.machine = communicator.members().machine,
                    .conditions = communicator.plans().conditions(),
                    .forced = communicator.plans().forced(),
                    .fixed_order = communicator.members().deterministic && reduces(collective),
                    .over = communicator.links().channels().transport(access)});
  };
  if (facts.spans_hosts) return ranks + by(Access::slots) + device_memory(communicator);
  const AccessTable& access_table = communicator.plans().access_table(collective, /*ordinary=*/true);
  if (fits_inline(size, facts, access_table)) return ranks + by(Access::in_line) + device_memory(communicator);
  const auto for_buffers = [&](const Buffers& buffers) {
    const Access fastest = large_access(size, facts, access_table, buffers);
    return communicator.plans().may_use(collective, fastest) ? fastest : Access::slots;
  };
  const auto& peers = communicator.members().peers;
  const bool maps = std::ranges::none_of(peers, has_given_up_mapping);
  const bool pulls = std::ranges::none_of(peers, has_given_up_pulling);
  const Access mapped = for_buffers({.mapped = true, .mappable = maps, .readable = pulls});
  const Access ordinary =
      for_buffers({.mapped = facts.one_process, .huge = false, .mappable = maps, .readable = pulls});
  const std::string on_host =
      mapped == ordinary ? by(mapped)
                         : fmt::format("Memory of tuttiMemAlloc: {}\nOrdinary memory: {}", by(mapped), by(ordinary));
  return ranks + on_host + device_memory(communicator);
}

Result<Collective> collective_named(const char* word) {
  std::string known;
  for (int i = 0; i < collective_count; ++i) {
    const Collective collective = *enumerator<Collective>(static_cast<std::uint64_t>(i));
    if (word != nullptr && plain(word) == plain(name(collective))) return collective;
    known += fmt::format("{}{}", i == 0 ? "" : ", ", name(collective));
  }
  return invalid_argument(
      fmt::format("collective \"{:.64}\" is not one of {}", word == nullptr ? "NULL" : word, known));
}

}  // namespace tutti
