// The last phase: how the start went on each rank, and rank 0's numbers and map of the job for all.
#include <algorithm>

#include <fmt/format.h>

#include "comm/transports/transports.h"
#include "init/phases/phases.h"

namespace tutti::start {
namespace {

InitResult result_of(const Facts& facts) {
  InitResult result;
  if (facts.trouble) {
    result.code = static_cast<std::uint32_t>(facts.trouble->code);
    put_text(result.what, facts.trouble->text());
  }
  result.pulls = facts.members.pulls;
  result.reaches_gpus = facts.gpus.reaches();
  result.kernels_sync = facts.gpus.reaches() && facts.gpus.synchronizes();
  return result;
}

/// The numbers by which all ranks choose.
Machine machine_of(Facts& facts) {
  Process& process = facts.process;
  Machine machine =
      facts.options.machine ? *facts.options.machine : process.choices.tune->machine(facts.cpus, process.log);
  if (!facts.several_hosts()) return machine;
  std::uint32_t common = ~0u;
  for (const Peer& peer : facts.members.peers) common &= peer.transports;
  if (const auto rates = wire_rates(process, common)) machine.wire = *rates;
  return machine;
}

}  // namespace

Result<Blob> Agreement::contribution(Facts& facts) {
  return heard_ ? next_map_part(facts, facts.options.map_part_bytes) : result_of_this_rank(facts);
}

Blob Agreement::result_of_this_rank(Facts& facts) {
  const InitResult result = result_of(facts);
  if (facts.rank() != 0 || facts.trouble) return to_blob(result);
  told_.emplace(facts.members.map);
  Blob blob = to_blob(FirstInitResult{.result = result,
                                      .map_bytes = static_cast<std::uint32_t>(told_->bytes()),
                                      .machine = machine_of(facts).numbers()});
  const Blob part = next_map_part(facts, BootstrapLimits{}.blob_bytes_max - blob.size());
  blob.insert(blob.end(), part.begin(), part.end());
  return blob;
}

/// Nothing of other ranks than 0.
Blob Agreement::next_map_part(const Facts& facts, std::size_t bytes_max) {
  if (!told_) return {};
  const auto part = told_->part(std::min(bytes_max, facts.options.map_part_bytes));
  return {part.begin(), part.end()};
}

Result<bool> Agreement::take(Facts& facts, const std::vector<Blob>& gathered) {
  if (heard_) return take_map(facts, gathered[0]);
  TUTTI_TRY(agree(facts, gathered));
  return take_map(facts, behind_first_init_result(gathered[0]));
}

Result<void> Agreement::agree(Facts& facts, const std::vector<Blob>& gathered) {
  Membership& members = facts.members;
  members.pulls = true;
  members.gpus_reach = true;
  for (Rank rank = 0; rank < facts.ranks(); ++rank) {
    auto result = read_init_result(gathered[rank]);
    if (!result) return std::move(result).error().at_peer(rank);
    if (result->code != 0) {
      std::string why = get_text(result->what, Lines::several);
      const auto& trouble = facts.trouble;
      if (trouble && trouble->text().starts_with(why)) why = trouble->text();  // the exchanged text is truncated
      return Error{.code = received_code(result->code), .what = fmt::format("rank {} could not join: {}", rank, why)};
    }
    members.pulls = members.pulls && result->pulls != 0;
    members.gpus_reach = members.gpus_reach && result->reaches_gpus != 0;
    facts.kernels_sync = facts.kernels_sync && result->kernels_sync != 0;
  }
  auto first = read_first_init_result(gathered[0]);
  if (!first) return std::move(first).error().at_peer(0);
  auto machine = Machine::of(first->machine);
  if (!machine) return std::move(machine).error().at_peer(0);
  members.machine = *machine;
  auto announced = MapExchange::announced(first->map_bytes, facts.ranks());
  if (!announced) return std::move(announced).error().at_peer(0);
  heard_.emplace(*std::move(announced));
  if (facts.rank_failed) return Error{.code = Code::remote, .what = "a rank failed, and no rank reported which"};
  return {};
}

/// All ranks have heard the same, so all end here alike.
Result<bool> Agreement::take_map(Facts& facts, std::span<const std::byte> part) {
  if (auto taken = heard_->take(part); !taken) return std::move(taken).error().at_peer(0);
  if (heard_->more()) return true;
  auto map = heard_->map(facts.ranks());
  if (!map) return std::move(map).error().at_peer(0);
  facts.members.map = *std::move(map);
  return false;
}

}  // namespace tutti::start
