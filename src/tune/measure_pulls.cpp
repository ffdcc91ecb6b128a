// Measures how fast memory of another process is copied (CMA).
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "exec/pull.h"
#include "exec/reduce.h"
#include "tune/measure.h"
#include "tune/sampler.h"

namespace tutti {
namespace {

constexpr std::size_t page_bytes = 4096, huge_page_bytes = 2 << 20;
constexpr std::size_t memory_bytes = Rates::footprints.back();
constexpr std::size_t large_pull_bytes = 128 * 1024;

/// Each member's ordinary memory, on huge pages if the system gives them. The first half is pulled from.
class Memory {
 public:
  explicit Memory(bool huge) {
    at_ = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at_ != MAP_FAILED) ::madvise(at_, mapped_bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
  ~Memory() {
    if (at_ != MAP_FAILED) ::munmap(at_, mapped_bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  explicit operator bool() const { return at_ != MAP_FAILED; }
  std::byte* of(int member) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(at_);
    auto* const aligned = static_cast<std::byte*>(at_) + (huge_page_bytes - begin % huge_page_bytes) % huge_page_bytes;
    return aligned + static_cast<std::size_t>(member) * (memory_bytes + huge_page_bytes);
  }
  void touch(Sampler& sampler) const {
    sampler.run([this](int member) { std::memset(of(member), 1, memory_bytes + page_bytes); });
  }

 private:
  static constexpr std::size_t mapped_bytes = 2 * (memory_bytes + huge_page_bytes) + huge_page_bytes;
  void* at_;
};

class Pulls {
 public:
  Pulls(Sampler& sampler, const Memory& memory) : sampler_(sampler), memory_(memory) {}

  /// Seconds of one pull of `bytes` from all over the other's half of the footprint into all of one's own. `apart`:
  /// bytes from source to destination modulo a page. `alone`: one member pulls while the other waits.
  double seconds(std::size_t bytes, std::size_t footprint, std::size_t apart, bool alone = false);
  /// Seconds of pulling `bounce` bytes into a buffer again and again, each time to be summed up with own memory.
  double bounced_seconds(std::size_t bounce);
  /// Bytes per second of sums that each member makes in its own memory, and the other then pulls. `none`: seconds of a
  /// pull of no bytes, which are left out.
  double pulled_rate(std::size_t footprint, Loop loop, double none);
  bool permitted() const { return permitted_[0] && permitted_[1]; }

 private:
  /// With the word, as peers are read.
  ForeignProcess self() const {
    return {.pid = ::getpid(), .word_at = reinterpret_cast<std::uint64_t>(&word_), .word = word_};
  }
  int other(int member) const { return sampler_.members() > 1 ? 1 - member : member; }
  void pull_once(int member, const std::byte* from, std::span<std::byte> into) {
    bool& permitted = permitted_[static_cast<std::size_t>(member)];
    permitted = permitted && static_cast<bool>(pull(self(), from, into));
  }

  Sampler& sampler_;
  const Memory& memory_;
  std::uint64_t word_ = 1;
  std::array<bool, 2> permitted_{true, true};
};

double Pulls::seconds(std::size_t bytes, std::size_t footprint, std::size_t apart, bool alone) {
  const std::size_t half = footprint / 2, step = std::max(bytes, page_bytes);
  const std::size_t pulls = std::max<std::size_t>(std::size_t{1} << 20, 8 * step) / step;
  std::size_t begun = 0;
  const double all = sampler_.median_of(2, [&] {
    const auto sample = sampler_.run([&](int member) {
      if (alone && member != 0) return;
      const std::byte* const from = memory_.of(other(member));
      std::byte* const to = memory_.of(member) + half + apart;
      for (std::size_t i = 0; i < pulls; ++i) {
        const std::size_t at = (begun + i) * step % (half - step + page_bytes) / page_bytes * page_bytes;
        pull_once(member, from + at, {to + at, bytes});
      }
    });
    begun += pulls;
    return sample;
  });
  return all / static_cast<double>(pulls);
}

double Pulls::bounced_seconds(std::size_t bounce) {
  constexpr std::size_t total = 2 << 20, half = memory_bytes / 2;
  std::size_t begun = 0;
  return sampler_.median_of(2, [&] {
    const auto sample = sampler_.run([&](int member) {
      std::byte* const own = memory_.of(member);
      std::byte* const buffer = own + half;
      for (std::size_t at = begun; at < begun + total; at += bounce) {
        pull_once(member, memory_.of(other(member)) + at, {buffer, bounce});
        const std::array sources = {Source{.at = buffer, .scaled = false, .scalar = 0},
                                    Source{.at = own + at, .scaled = false, .scalar = 0}};
        std::byte* const sum = buffer + huge_page_bytes + at % (half - huge_page_bytes - total);
        reduce_pass({.sources = sources,
                     .destinations = {&sum, 1},
                     .count = bounce / sizeof(float),
                     .type = DataType::float32});
      }
    });
    begun = (begun + total) % (half - total);
    return sample;
  }) * (static_cast<double>(bounce) / total);
}

/// As in an all-reduce of two ranks: half the footprint is input, half output, and each rank makes half of the sums.
double Pulls::pulled_rate(std::size_t footprint, Loop loop, double none) {
  constexpr std::size_t window_max = 256 * 1024;
  const std::size_t share = std::min(footprint, memory_bytes) / 4, window = std::min(share, window_max);
  const std::size_t uncounted = footprint < memory_bytes ? std::max<std::size_t>(8, 2 * share / window) : 1;
  std::size_t at = 0;
  const double seconds = sampler_.median_of(uncounted, [&] {
    const auto made = sampler_.run([&](int member) {
      std::byte* const own = memory_.of(member);
      std::byte* const sum = own + 2 * share + at;
      const std::array sources = {Source{.at = own + 4 * share, .scaled = false, .scalar = 0},  // as a bounce buffer
                                  Source{.at = own + at, .scaled = false, .scalar = 0}};
      reduce_pass({.sources = sources,
                   .destinations = {&sum, 1},
                   .count = window / sizeof(float),
                   .type = DataType::float32,
                   .loop = loop});
    });
    const auto taken = sampler_.run([&](int member) {
      pull_once(member, memory_.of(other(member)) + 2 * share + at, {memory_.of(member) + 3 * share + at, window});
    });
    at = (at + window) % share;
    return Sampler::Sample{.seconds = made.seconds + taken.seconds,
                           .undisturbed = made.undisturbed && taken.undisturbed};
  });
  return static_cast<double>(window) / std::max(seconds - none, 0.1 * seconds);
}

/// The loops take turns, so that a slow moment of the machine does not decide between them.
LoopRates::OfPulled pulled_gbps(Pulls& pulls, std::size_t footprint, double none) {
  LoopRates::OfPulled best{};
  for (int round = 0; round < 2; ++round)
    for (std::size_t loop = 0; loop < best.size() && pulls.permitted(); ++loop)
      best[loop] = std::max(best[loop], 1e-9 * pulls.pulled_rate(footprint, PulledFootprints::loops[loop], none));
  return best;
}

/// The best of some rounds over all footprints: the machine may be slow at one moment.
void measure_rates(Pulls& pulls, double none, Rates& together, Rates& alone) {
  constexpr int rounds = 2;
  for (Rates* rates : {&together, &alone}) rates->gbps.fill(0);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < Rates::footprints.size() && pulls.permitted(); ++i) {
      const std::size_t bytes = std::min(large_pull_bytes, Rates::footprints[i] / 4);
      for (Rates* rates : {&together, &alone}) {
        const double seconds = pulls.seconds(bytes, Rates::footprints[i], 0, rates == &alone);
        const double gbps = 1e-9 * static_cast<double>(bytes) / std::max(seconds - none, 0.1 * seconds);
        rates->gbps[i] = std::max(rates->gbps[i], gbps);
      }
    }
}

}  // namespace

void measure_pulls(Sampler& sampler, Machine& machine) {
  constexpr std::size_t apart = 16;  // memory of malloc begins at 16 modulo a page if it is large
  Machine measured = machine;
  for (const bool huge : {false, true}) {
    const Memory memory(huge);
    if (!memory) return;
    memory.touch(sampler);
    Pulls pulls(sampler, memory);
    const double none = pulls.seconds(64, Rates::footprints[0], 0);
    measure_rates(pulls, none, huge ? measured.pull.huge_together : measured.pull.together,
                  huge ? measured.pull.huge_alone : measured.pull.alone);
    if (huge) {
      for (std::size_t i = 0; i < PullRates::bounces.size(); ++i)
        measured.pull.bounced_gbps[i] =
            1e-9 * static_cast<double>(PullRates::bounces[i]) / pulls.bounced_seconds(PullRates::bounces[i]);
    } else {
      const double seconds = pulls.seconds(large_pull_bytes, Rates::footprints[2], apart);
      for (std::size_t i = 0; i < PulledFootprints::bytes.size(); ++i)
        measured.loops.pulled_gbps[i] = pulled_gbps(pulls, PulledFootprints::bytes[i], none);
      measured.pull.call_us = 1e6 * none;
      measured.pull.apart_gbps = 1e-9 * static_cast<double>(large_pull_bytes) / std::max(seconds - none, 0.1 * seconds);
    }
    if (!pulls.permitted() || sampler.disturbed()) return;
  }
  machine = measured;
}

}  // namespace tutti
