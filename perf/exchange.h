// How ranks meet outside what is measured: a barrier and small values from everyone to everyone.
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

  /// Returns when all ranks are here.
  virtual void barrier() = 0;
  /// One value of each rank, by rank.
  virtual std::vector<std::uint64_t> gather(std::uint64_t mine) = 0;
};

/// A page shared by all ranks of one run: the supervisor maps it before it forks them.
struct ControlPage {
  static constexpr int kMaxRanks = 256;

  alignas(64) std::atomic<std::uint32_t> arrived{0};
  alignas(64) std::atomic<std::uint32_t> generation{0};
  alignas(64) std::atomic<bool> abandoned{false};  ///< a rank failed and has said why, or died: leave quietly
  std::atomic<bool> id_ready{false};
  tuttiUniqueId id{};
  std::uint64_t values[kMaxRanks] = {};

  struct Unmap {
    void operator()(ControlPage* page) const;
  };
  /// Null when the system refuses.
  static std::unique_ptr<ControlPage, Unmap> create();

  /// Ends this process, quietly, once the run is abandoned.
  void leave_if_abandoned() const;
};

/// Through the page: works whatever state tutti is in.
std::unique_ptr<Exchange> exchange_by_page(ControlPage& page, int rank, int ranks);

/// Through tutti's own collectives, for ranks that a launcher started and that share no page.
std::unique_ptr<Exchange> exchange_by_tutti(tuttiComm_t comm, int rank, int ranks);

}  // namespace perf
