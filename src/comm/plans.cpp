#include "comm/plans.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "choice/rank_plan.h"
#include "choice/select.h"
#include "plan/fuse.h"
#include "plan/inviting.h"
#include "plan/lower.h"
#include "plan/outlasting.h"

namespace tutti {
namespace {

constexpr std::size_t plans_max = 256;

std::optional<Access> forced_access(const Config& config) {
  const std::string& forced = config.text("TUTTI_TRANSPORT");
  for (const Access access : {Access::mapped, Access::cma, Access::slots})
    if (forced == name(access)) return access;
  return std::nullopt;
}

AccessFacts facts_of(const Membership& members, const Config& config, std::size_t payload_bytes) {
  const auto beside_first = [&](const Peer& peer) { return peer.token == members.peers[0].token; };
  return {.forced = forced_access(config),
          .spans_hosts = members.spans_hosts(),
          .one_process = std::ranges::all_of(members.peers, beside_first),
          .pulls = members.pulls,
          .payload_bytes = payload_bytes};
}

Conditions conditions_of(const Membership& members, const Channels& channels) {
  std::vector<double> pair_gbps;
  for (const std::uint32_t mbps : members.map.pair_mbps) pair_gbps.push_back(mbps * 1e-3);
  return {.cores = members.cores,
          .channels = members.area->area.shape().channels - 1,
          .slots = channels.slots(),
          .slot_bytes = channels.slot_bytes(),
          .hosts = members.spans_hosts() ? members.hosts : std::vector<int>{},
          .pair_gbps = std::move(pair_gbps)};
}

/// Whether calls can contradict the measured numbers: this rank's process has measured or read them, and no network,
/// lack of cores or setting explains other times.
bool can_contradict(const Membership& members, const Config& config) {
  return members.rank == 0 && members.ranks > 1 && !members.spans_hosts() && !members.oversubscribed &&
         !loop_of(config.text("TUTTI_LOOP")) && config.integer("TUTTI_NT_THRESHOLD") == 0;
}

/// Of the rank with the largest input.
std::size_t groups_of_input(const Shape& shape) {
  return static_cast<std::size_t>(std::max(input_groups(shape.collective, shape.ranks, shape.root, shape.root), 1));
}

}  // namespace

Plans::Plans(Process& process, const Membership& members, const Channels& channels, std::size_t payload_bytes)
    : process_(process),
      members_(members),
      channels_(channels),
      conditions_(conditions_of(members, channels)),
      access_facts_(facts_of(members, process.config, payload_bytes)),
      forced_(process.config.text("TUTTI_ALGO")),
      rank_order_(members.ranks),
      plans_(plans_max) {
  if (can_contradict(members, process.config)) prediction_check_.emplace();
}

std::string Plans::filter(Collective collective, Access access) {
  if (!members_.deterministic || !reduces(collective)) return forced_;
  return rank_order_.filter(collective, access, forced_);
}

bool Plans::may_use(Collective collective, Access access) {
  if (!members_.deterministic || !prefixes(collective)) return true;
  return !rank_order_.filter(collective, access, "").empty();
}

Result<void> Plans::check_settings() {
  if (!members_.deterministic) return {};
  const auto& file = process_.choices.plan_file;
  if (file && !file->rank_order() && file->schedule().ranks() == members_.ranks)
    return Error{
        .code = Code::invalid_usage,
        .what = fmt::format(
            "TUTTI_PLAN_FILE, {}, does not sum up in the order of ranks, which a deterministic communicator requires",
            file->text())};
  return rank_order_.check(forced_);
}

const Algorithm& Plans::algorithm(const Shape& shape, Access access, std::size_t bytes, bool counts) {
  auto& envelope = envelopes_[static_cast<std::size_t>(shape.collective)][static_cast<std::size_t>(access)][counts];
  if (envelope == nullptr)
    envelope = process_.choices.envelopes.of(members_.with_levels(shape), access, filter(shape.collective, access),
                                             members_.machine, conditions_, counts);
  return envelope->at(counts ? bytes * groups_of_input(shape) : bytes);
}

/// Predictions are made for powers of two; between them, times are nearly straight lines.
double Plans::predicted_us(const Shape& shape, Access access, std::size_t bytes) const {
  const auto& envelope = envelopes_[static_cast<std::size_t>(shape.collective)][static_cast<std::size_t>(access)][0];
  if (envelope == nullptr || !is_modelled(shape, access) || bytes == 0) return 0;
  const std::size_t below = std::bit_floor(bytes);
  if (below >= Envelope::bytes_max) return bytes == Envelope::bytes_max ? envelope->us(bytes) : 0;
  const double share = static_cast<double>(bytes - below) / static_cast<double>(below);
  return envelope->us(below) + share * (envelope->us(2 * below) - envelope->us(below));
}

const AccessTable& Plans::access_table(Collective collective, bool ordinary) {
  KnownAccessTable& known = access_tables_[static_cast<std::size_t>(collective)];
  if (known.known && (known.ordinary || !ordinary)) return known.access_table;
  const auto make = [&](const Shape& shape, Access access, const Machine& machine, const Conditions& conditions) {
    return process_.choices.envelopes.of(shape, access, filter(collective, access), machine, conditions);
  };
  const Shape shape = members_.with_levels({.collective = collective, .ranks = members_.ranks});
  known = {.access_table = predict_access_table(shape, members_.machine, conditions_, ordinary, make),
           .known = true,
           .ordinary = ordinary};
  return known.access_table;
}

const Plan& Plans::insert(const PlanKey& key, Plan plan, const std::string& algorithm) {
  process_.log.info(LogTopic::coll, members_.who, "{} uses {} over {}", name(key.collective), algorithm,
                    channels_.transport(key.access));
  plan = fuse(std::move(plan), conditions_.slots);
  if (channels_.offers()) plan.outlasts = outlasting(plan);
  if (channels_.sends_segments()) plan.invitations = invitations(plan);
  return plans_.insert(key, std::move(plan));
}

Plans::Planned Plans::of(const Shape& shape, Access access, std::size_t bytes, bool counts) {
  const Algorithm& chosen = algorithm(shape, access, bytes, counts);
  const PlanKey key{&chosen, shape.collective, access, shape.root};
  const Plan* const known = plans_.find(key);
  if (known != nullptr) return {*known, chosen.name.c_str()};
  Plan own = rank_plan(chosen, members_.with_levels(shape), members_.rank, access);
  return {insert(key, std::move(own), chosen.name), chosen.name.c_str()};
}

Plans::Planned Plans::from_file(const Shape& shape, Access access) {
  const PlanFile& file = *process_.choices.plan_file;
  const PlanKey key{nullptr, shape.collective, access, shape.root};
  const Plan* const known = plans_.find(key);
  if (known != nullptr) return {*known, file.name().c_str()};
  return {insert(key, lower(file.schedule(), members_.rank, access), file.name()), file.name().c_str()};
}

}  // namespace tutti
