// Segments of this process that a device may read: registered when a message is first sent from them, until they are
// freed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "transport/segment.h"
#include "transport/verbs/library.h"

namespace tutti::verbs {

/// Only memory that tutti owns is registered: it sees that memory's end. Used by one thread at a time.
class Registrations {
 public:
  /// All arguments must outlive this.
  Registrations(const Library& library, Pd* pd, const SegmentTable& segments)
      : library_(library), pd_(pd), segments_(segments), retired_(segments.retired()) {}
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// The key under which the device reads all of `memory`; nothing if it is in no segment, or cannot be registered.
  std::optional<std::uint32_t> key_of(std::span<const std::byte> memory);

 private:
  void drop_dead();

  const Library& library_;
  Pd* pd_;
  const SegmentTable& segments_;
  std::uint32_t retired_;
  std::map<SegmentName, Mr*> known_;  // null: could not be registered
};

}  // namespace tutti::verbs
