// Memory that a process shares with others: its segments, the areas of its ranks, and what it has mapped of other
// processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/page_kind.h"
#include "process/places.h"
#include "process/service.h"
#include "transport/fd_server.h"
#include "transport/rank_area.h"
#include "transport/segment.h"

namespace tutti {

/// The area of one of this process's ranks. Thread ranks of one process hold each other's.
class OwnedArea {
 public:
  OwnedArea(SegmentTable& segments, std::byte* at, SegmentLocation location, const AreaShape& shape)
      : area(at, shape), base(at), name(location.name), segments_(segments) {}
  ~OwnedArea() { (void)segments_.free(base); }
  /// Called when all ranks of this host have mapped the area: a communicator keeps no descriptor.
  void stop_sharing() { segments_.stop_sharing(base); }
  OwnedArea(const OwnedArea&) = delete;
  OwnedArea& operator=(const OwnedArea&) = delete;

  RankArea area;
  std::byte* const base;
  const SegmentName name;

 private:
  SegmentTable& segments_;
};

/// Thread-safe.
class ProcessMemory {
 public:
  /// `places` must outlive this.
  explicit ProcessMemory(Places& places) : places_(places) {}

  /// Memory that peers can map, as SegmentTable::allocate, on the NUMA node of the calling thread if it is bound to
  /// one.
  Result<std::byte*> allocate(std::size_t bytes, bool touch);

  /// A new formatted area, which thread ranks find under its segment id. Errors: system.
  Result<std::shared_ptr<OwnedArea>> make_area(const AreaShape& shape);
  std::shared_ptr<OwnedArea> find_area(std::uint32_t segment_id);

  /// Starts the descriptor server unless it is running; the service must end before this does.
  Result<void> serve(const ProcessKey& key, Service& service);
  /// Requires that it was started.
  const std::string& fd_server_name() const { return fd_server_->name(); }

  SegmentTable segments;
  PageKinds pages;
  SegmentCache cache;

 private:
  Places& places_;
  std::mutex mutex_;
  std::shared_ptr<FdServer> fd_server_;
  std::map<std::uint32_t, std::weak_ptr<OwnedArea>> areas_;
};

}  // namespace tutti
