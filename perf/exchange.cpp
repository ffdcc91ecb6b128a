#include "perf/exchange.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "perf/launch.h"

namespace perf {
namespace {

class ByPage final : public Exchange {
 public:
  ByPage(ControlPage& page, int rank, int ranks)
      : page_(page),
        rank_(rank),
        ranks_(static_cast<std::uint32_t>(ranks)),
        crowded_(ranks > ::sysconf(_SC_NPROCESSORS_ONLN)) {}

  void barrier() override {
    const std::uint32_t generation = page_.generation.load();
    if (page_.arrived.fetch_add(1) + 1 == ranks_) {
      page_.arrived.store(0);
      page_.generation.store(generation + 1);
      return;
    }
    for (unsigned spins = 0; page_.generation.load() == generation; ++spins) {
      if (crowded_ || spins > 100'000) {
        page_.leave_if_abandoned();
        ::sched_yield();
      }
    }
  }

  std::vector<std::uint64_t> gather(std::uint64_t mine) override {
    page_.values[rank_] = mine;
    barrier();
    std::vector<std::uint64_t> all(page_.values, page_.values + ranks_);
    barrier();
    return all;
  }

 private:
  ControlPage& page_;
  int rank_;
  std::uint32_t ranks_;
  bool crowded_;
};

class ByTutti final : public Exchange {
 public:
  ByTutti(tuttiComm_t comm, int rank, int ranks) : comm_(comm), rank_(rank), ranks_(static_cast<std::size_t>(ranks)) {}

  void barrier() override { expect_success(tuttiBarrier(comm_, nullptr), comm_, rank_, "tuttiBarrier"); }

  std::vector<std::uint64_t> gather(std::uint64_t mine) override {
    std::vector<std::uint64_t> all(ranks_);
    expect_success(tuttiAllGather(&mine, all.data(), 1, tuttiUint64, comm_, nullptr), comm_, rank_, "tuttiAllGather");
    return all;
  }

 private:
  tuttiComm_t comm_;
  int rank_;
  std::size_t ranks_;
};

}  // namespace

void ControlPage::Unmap::operator()(ControlPage* page) const {
  ::munmap(page, sizeof(ControlPage));
}

std::unique_ptr<ControlPage, ControlPage::Unmap> ControlPage::create() {
  void* at = ::mmap(nullptr, sizeof(ControlPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return std::unique_ptr<ControlPage, Unmap>(at == MAP_FAILED ? nullptr : new (at) ControlPage);
}

void ControlPage::leave_if_abandoned() const {
  if (abandoned.load()) ::_exit(Exit::failed);
}

std::unique_ptr<Exchange> exchange_by_page(ControlPage& page, int rank, int ranks) {
  return std::make_unique<ByPage>(page, rank, ranks);
}

std::unique_ptr<Exchange> exchange_by_tutti(tuttiComm_t comm, int rank, int ranks) {
  return std::make_unique<ByTutti>(comm, rank, ranks);
}

}  // namespace perf
