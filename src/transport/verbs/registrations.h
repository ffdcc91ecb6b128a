// Segments of this process that a device may use: registered when a message first leaves from them or is invited to
// them, until they are freed.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "transport/segment.h"
#include "transport/verbs/library.h"

namespace tutti::verbs {

/// Only memory that tutti owns is registered: it sees that memory's end. Used by one thread at a time.
class Registrations {
 public:
  /// All arguments must outlive this.
  /// `access`: access_flag.
  Registrations(const Library& library, Pd* pd, const SegmentTable& segments, int access)
      : library_(library), pd_(pd), segments_(segments), access_(access), retired_(segments.retired()) {}
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// What holds all of `memory`; null if it is in no segment, or cannot be registered.
  Mr* find(std::span<const std::byte> memory);

 private:
  void drop_dead();

  const Library& library_;
  Pd* pd_;
  const SegmentTable& segments_;
  int access_;
  std::uint32_t retired_;
  std::map<SegmentName, Mr*> known_;  // null: could not be registered
};

}  // namespace tutti::verbs
