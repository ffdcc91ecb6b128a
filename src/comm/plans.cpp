#include "comm/plans.h"

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

/// Of the rank with the largest input.
std::size_t groups_of_input(const Shape& shape) {
  return static_cast<std::size_t>(std::max(input_groups(shape.collective, shape.ranks, shape.root, shape.root), 1));
}

}  // namespace

Plans::Plans(Process& process, const Membership& members, const Channels& channels, const Conditions& conditions,
             std::string who)
    : process_(process),
      members_(members),
      channels_(channels),
      conditions_(conditions),
      who_(std::move(who)),
      forced_(process.config.text("TUTTI_ALGO")),
      rank_order_(members.ranks),
      plans_(plans_max) {}

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
  process_.log.info(LogTopic::coll, who_, "{} uses {} over {}", name(key.collective), algorithm,
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
