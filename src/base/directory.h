// Objects that threads of one process share under a number that all of them know.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <typeindex>
#include <utility>

namespace tutti {

/// Owns nothing: an object lives as long as a user keeps it. Thread-safe.
class Directory {
 public:
  /// The object of type T with this key. The first user makes it with `make()`, which returns a shared_ptr<T>.
  template <class T, class Make>
  std::shared_ptr<T> find_or_make(std::uint32_t key, Make make) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
    auto& entry = entries_[{std::type_index(typeid(T)), key}];
    if (auto known = entry.lock()) return std::static_pointer_cast<T>(std::move(known));
    std::shared_ptr<T> made = make();
    entry = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::type_index, std::uint32_t>, std::weak_ptr<void>> entries_;
};

}  // namespace tutti
