// Synchronises ranks outside of the measurements: a barrier, and small values from every rank to every rank.
#pragma once

#include <sys/types.h>
#include <tutti/tutti.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace perf {

class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Returns when all ranks have arrived.
  virtual void barrier() = 0;
  /// One value per rank, by rank.
  virtual std::vector<std::uint64_t> gather(std::uint64_t mine) = 0;
};

/// A page shared by all ranks of one run; the supervisor maps it before it forks them.
struct ControlPage {
  static constexpr int kMaxRanks = 256;

  alignas(64) std::atomic<std::uint32_t> arrived{0};
  alignas(64) std::atomic<std::uint32_t> generation{0};
  alignas(64) std::atomic<bool> abandoned{false};  ///< a rank failed and has reported it, or died: exit quietly
  std::atomic<bool> id_ready{false};
  tuttiUniqueId id{};
  std::uint64_t values[kMaxRanks] = {};

  struct Unmap {
    void operator()(ControlPage* page) const;
  };
  /// Null if the system refuses.
  static std::unique_ptr<ControlPage, Unmap> create();

  /// Ends this process quietly once the run is abandoned.
  void leave_if_abandoned() const;
};

/// Through the page: works in any state of tutti.
std::unique_ptr<Exchange> exchange_by_page(ControlPage& page, int rank, int ranks);

/// Through tutti's own collectives, for ranks started by a launcher, which share no page.
std::unique_ptr<Exchange> exchange_by_tutti(tuttiComm_t comm, int rank, int ranks);

}  // namespace perf
