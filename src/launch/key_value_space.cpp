#include "launch/key_value_space.h"

namespace tutti {
namespace {

Result<std::shared_ptr<KeyValueSpace>> open(System& system, const LaunchInfo& launch, std::int64_t deadline_ns) {
  switch (launch.space) {
    case SpaceKind::none: break;
    case SpaceKind::pmix: return open_pmix(system, launch, deadline_ns);
    case SpaceKind::pmi1: return open_pmi1(system, launch, deadline_ns);
    case SpaceKind::pmi2: return open_pmi2(system, launch, deadline_ns);
  }
  return std::shared_ptr<KeyValueSpace>();
}

}  // namespace

Result<std::shared_ptr<KeyValueSpace>> LauncherSpace::get(System& system, const LaunchInfo& launch,
                                                          std::int64_t deadline_ns) {
  const std::lock_guard lock(mutex_);
  if (!space_) space_ = open(system, launch, deadline_ns);
  if (*space_) return **space_;
  return Error(space_->error());
}

}  // namespace tutti
