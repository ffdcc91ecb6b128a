// Memory of this process that a device may use: registered when a message first leaves from it or is invited to it,
// until it is freed or taken back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "transport/registered_ranges.h"
#include "transport/segment.h"
#include "transport/verbs/library.h"

namespace tutti::verbs {

/// The memory that messages may leave from and arrive in without a copy.
struct UsableMemory {
  const SegmentTable* segments = nullptr;  ///< tutti's own: it sees that memory's end; must outlive the user
  std::shared_ptr<const RegisteredRanges> ranges = {};  ///< its owner says when it ends; null: none
};

/// Used by one thread at a time.
class Registrations {
 public:
  /// All arguments must outlive this. `access`: access_flag.
  Registrations(const Library& library, Pd* pd, const UsableMemory& memory, int access);
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// What holds all of `memory`; null if it is not of this kind, or cannot be registered.
  Mr* find(std::span<const std::byte> memory);

 private:
  template <class Known, class Key>
  Mr* known_or_new(Known& known, const Key& key, std::byte* begin, std::size_t bytes);
  template <class Known, class Alive>
  void drop_dead(Known& known, Alive alive);

  const Library& library_;
  Pd* pd_;
  UsableMemory memory_;
  int access_;
  std::uint32_t retired_ = 0;
  std::uint32_t removals_ = 0;
  std::map<SegmentName, Mr*> segments_;  // null: could not be registered
  std::map<std::uint64_t, Mr*> ranges_;  // by id, as well
};

}  // namespace tutti::verbs
