#include "plan/last_passes.h"

#include <algorithm>

namespace tutti {

LastPasses::LastPasses(const Plan& plan)
    : numbers_(plan),
      touched_(numbers_.memories(), none),
      written_(numbers_.memories(), none),
      made_(numbers_.names(), none),
      copied_(numbers_.names(), none) {}

void LastPasses::runs(int pass, const Action& action) {
  for (std::size_t i = 0; i < action.sources; ++i) touched_[numbers_.memory(action.first + i)] = pass;
  if (action.verb == Verb::copy) copied_[numbers_.name(action.first)] = pass;
  for (std::size_t i = 0; i < action.destinations; ++i) writes(pass, action.first + action.sources + i);
}

int LastPasses::maker_of(const Plan& plan, const Action& copy) const {
  if (copy.destinations != 1 || plan.sources(copy)[0].where == Where::slot) return none;
  const std::size_t wanted = copy.first, stored = copy.first + copy.sources;
  const int shared = plan.access == Access::slots ? none : copied_[numbers_.name(wanted)];
  const int last = std::max({written_[numbers_.memory(wanted)], touched_[numbers_.memory(stored)], shared, waited_});
  if (last == none || last == waited_) return none;
  const bool makes = made_[numbers_.name(wanted)] == last, shares = shared == last;
  const bool writes_too = written_[numbers_.memory(stored)] == last;
  return (makes || shares) && !writes_too ? last : none;
}

}  // namespace tutti
