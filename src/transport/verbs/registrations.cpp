#include "transport/verbs/registrations.h"

namespace tutti::verbs {

Registrations::Registrations(const Library& library, Pd* pd, const UsableMemory& memory, int access)
    : library_(library), pd_(pd), memory_(memory), access_(access), retired_(memory.segments->retired()) {
  if (memory_.ranges != nullptr) removals_ = memory_.ranges->removals();
}

Registrations::~Registrations() {
  const auto none = [](const auto&) { return false; };
  drop_dead(segments_, none);
  drop_dead(ranges_, none);
}

Mr* Registrations::find(std::span<const std::byte> memory) {
  const SegmentTable& segments = *memory_.segments;
  if (const std::uint32_t retired = segments.retired(); retired != retired_) {
    retired_ = retired;
    drop_dead(segments_, [&](const SegmentName& name) { return segments.alive(name); });
  }
  if (memory_.ranges != nullptr && memory_.ranges->removals() != removals_) {
    removals_ = memory_.ranges->removals();
    drop_dead(ranges_, [&](std::uint64_t id) { return memory_.ranges->has(id); });
  }
  auto* const at = const_cast<std::byte*>(memory.data());
  if (const auto location = segments.find(at, memory.size())) {
    const auto known = segments_.find(location->name);
    if (known != segments_.end()) return known->second;
    auto whole = segments.share(location->name);
    return known_or_new(segments_, location->name, at - location->offset, whole ? whole->bytes : 0);
  }
  const auto range = memory_.ranges != nullptr ? memory_.ranges->find(memory) : std::nullopt;
  return range ? known_or_new(ranges_, range->id, range->memory.data(), range->memory.size()) : nullptr;
}

template <class Known, class Key>
Mr* Registrations::known_or_new(Known& known, const Key& key, std::byte* begin, std::size_t bytes) {
  if (const auto found = known.find(key); found != known.end()) return found->second;
  Mr* const mr = bytes > 0 ? library_.ibv_reg_mr(pd_, begin, bytes, access_) : nullptr;
  known.emplace(key, mr);
  return mr;
}

/// Memory that was freed, or moved onto other pages, keeps its old pages as long as they are registered.
template <class Known, class Alive>
void Registrations::drop_dead(Known& known, Alive alive) {
  std::erase_if(known, [&](const auto& one) {
    if (alive(one.first)) return false;
    if (one.second != nullptr) (void)library_.ibv_dereg_mr(one.second);
    return true;
  });
}

}  // namespace tutti::verbs
