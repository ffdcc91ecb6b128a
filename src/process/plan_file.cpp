// Reads and proves the plan of TUTTI_PLAN_FILE.
#include "process/plan_file.h"

#include <fmt/format.h>

#include "base/file.h"
#include "formats/plan_file.h"
#include "formats/source.h"
#include "plan/lower.h"

namespace tutti {

namespace {

/// FNV-1a: equal on every machine and in every build.
std::uint64_t digest_of(const std::string& text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01b3;
  return hash;
}

}  // namespace

Result<std::shared_ptr<const PlanFile>> PlanFile::read(const std::string& path) {
  auto text = read_file(path);
  if (!text) return std::move(text).error().during("read TUTTI_PLAN_FILE");
  const auto within = [&path](Error error) { return std::move(error).during("TUTTI_PLAN_FILE " + path); };
  auto imported = formats::import_plan(*text);
  if (!imported) return within(std::move(imported).error());
  const auto meaning = formats::verify(*imported);
  if (!meaning) return within(meaning.error());

  std::shared_ptr<PlanFile> plan(new PlanFile(std::move(imported->schedule)));
  for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
    plan->carried_by_[static_cast<std::size_t>(access)] = lowers_to(plan->schedule_, access);
  if (!plan->carried_by(Access::slots))
    return within(Error{.code = Code::invalid_argument,
                        .what = "blocks change places within one step of one rank, which no order of copies can do"});
  plan->name_ = "plan file " + (imported->name.empty() ? path : imported->name);
  plan->digest_ = digest_of(*text);
  plan->bytes_min_ = imported->bytes_min;
  plan->bytes_max_ = imported->bytes_max;
  plan->rank_order_ = meaning->rank_order;
  return std::shared_ptr<const PlanFile>(std::move(plan));
}

bool PlanFile::serves(const Shape& shape, std::size_t bytes) const {
  return shape.collective == schedule_.collective() && shape.ranks == schedule_.ranks() &&
         (!rooted(shape.collective) || shape.root == schedule_.root()) && bytes >= bytes_min_ && bytes <= bytes_max_;
}

std::string PlanFile::text() const {
  const std::string_view collective = tutti::name(schedule_.collective());
  return fmt::format("{} of {} ranks, {} steps", collective, schedule_.ranks(), schedule_.steps());
}

}  // namespace tutti
