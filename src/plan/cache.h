// A bounded map that drops the least recently used entry, and the key of plans in such maps.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

#include "plan/plan.h"

namespace tutti {

/// Pointers to values stay valid until `capacity` other keys have been used.
template <class Key, class Value, class Hash>
class LruCache {
 public:
  explicit LruCache(std::size_t capacity) : capacity_(capacity) {}

  /// nullptr if unknown; otherwise the value becomes the most recently used.
  Value* find(const Key& key) {
    if (!entries_.empty() && entries_.front().first == key) return &entries_.front().second;
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &entries_.front().second;
  }

  Value& insert(const Key& key, Value value) {
    entries_.emplace_front(key, std::move(value));
    index_[key] = entries_.begin();
    if (entries_.size() > capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }

  std::size_t size() const { return entries_.size(); }

 private:
  std::size_t capacity_;
  std::list<std::pair<Key, Value>> entries_;
  std::unordered_map<Key, typename std::list<std::pair<Key, Value>>::iterator, Hash> index_;
};

/// What distinguishes the plans of one communicator.
struct PlanKey {
  const void* algorithm = nullptr;  ///< null: the plan of TUTTI_PLAN_FILE
  Collective collective = Collective::barrier;
  Access access = Access::slots;
  Rank root = 0;
  bool operator==(const PlanKey&) const = default;
};

struct PlanKeyHash {
  std::size_t operator()(const PlanKey& key) const {
    const auto small = static_cast<std::size_t>(key.root) << 8 | static_cast<std::size_t>(key.collective) << 4 |
                       static_cast<std::size_t>(key.access);
    return std::hash<const void*>{}(key.algorithm) ^ (small * 0x9e37'79b9'7f4a'7c15u);
  }
};

}  // namespace tutti
