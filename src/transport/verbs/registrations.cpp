#include "transport/verbs/registrations.h"

namespace tutti::verbs {

Registrations::~Registrations() {
  for (const auto& [name, mr] : known_)
    if (mr != nullptr) (void)library_.ibv_dereg_mr(mr);
}

Mr* Registrations::find(std::span<const std::byte> memory) {
  if (retired_ != segments_.retired()) drop_dead();
  const auto spot = segments_.find(memory.data(), memory.size());
  if (!spot) return nullptr;
  auto known = known_.find(spot->name);
  if (known == known_.end()) {
    auto whole = segments_.share(spot->name);
    auto* const begin = const_cast<std::byte*>(memory.data()) - spot->offset;
    Mr* const mr = whole ? library_.ibv_reg_mr(pd_, begin, whole->bytes, access_) : nullptr;
    known = known_.emplace(spot->name, mr).first;
  }
  return known->second;
}

/// A segment that was freed, or moved onto other pages, keeps its old pages as long as they are registered.
void Registrations::drop_dead() {
  retired_ = segments_.retired();
  std::erase_if(known_, [this](const auto& known) {
    if (segments_.alive(known.first)) return false;
    if (known.second != nullptr) (void)library_.ibv_dereg_mr(known.second);
    return true;
  });
}

}  // namespace tutti::verbs
