#include "tune/measure.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "exec/pull.h"
#include "exec/reduce.h"
#include "tune/workers.h"

namespace tutti {
namespace {

constexpr double enough_s = 0.002;    // time for measuring one number
constexpr double patience_s = 0.060;  // limit of the same, for when other work keeps taking the cores
constexpr int repeats_min = 3, repeats_max = 2000;
constexpr std::size_t footprint_max = Rates::footprints.back();

class Measurement {
 public:
  Measurement(const cpu_set_t& cpus, std::array<std::byte*, 2> memory) : workers_(cpus), memory_(memory) {}
  /// Nothing if other work left no time for measuring.
  std::optional<Machine> machine();

 private:
  using Sample = Workers::Sample;

  double best_of(const std::function<Sample()>& once);
  void latencies(Machine& machine);
  void rates_at(std::size_t index, Machine& machine);
  void streaming(Machine& machine);
  void pulling(Machine& machine);

  /// `part` of the `parts` into which a member's first `footprint` bytes are divided.
  std::byte* part(int member, std::size_t footprint, std::size_t parts, std::size_t part) const {
    return memory_[static_cast<std::size_t>(member)] + footprint / parts * part;
  }
  /// As Workers::run, without the time for starting together and waiting for each other.
  Sample run(const std::function<void(int)>& work) {
    Sample spent = workers_.run(work);
    spent.seconds = std::max(spent.seconds - start_s_, 0.1 * spent.seconds);
    return spent;
  }
  double copy_seconds(std::size_t footprint, bool stream);
  double reduce_seconds(std::size_t footprint);

  Workers workers_;
  std::array<std::byte*, 2> memory_;
  double start_s_ = 0;
  bool disturbed_ = false;
};

/// The best of as many undisturbed samples as fit in `enough_s`. A time slice of other work is as long as the longest
/// samples, so a number may need several attempts.
double Measurement::best_of(const std::function<Sample()>& once) {
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  int undisturbed = 0;
  for (int i = 0; i < repeats_max && !disturbed_ && (undisturbed < repeats_min || spent < enough_s); ++i) {
    const Sample sample = once();
    spent += sample.seconds;
    if (sample.undisturbed) {
      best = std::min(best, sample.seconds);
      ++undisturbed;
    }
    disturbed_ = undisturbed == 0 && spent > patience_s;
    if (spent > patience_s) break;
  }
  return best;
}

std::optional<Machine> Measurement::machine() {
  Machine machine;
  start_s_ = best_of([this] { return workers_.run([](int) {}); });
  // before the memory is touched, by far the longest part when other programs run
  if (disturbed_) return std::nullopt;
  workers_.run([this](int member) {
    // touches the pages; the value does not matter as a float
    std::fill_n(memory_[static_cast<std::size_t>(member)], footprint_max, std::byte{1});
  });
  latencies(machine);
  for (std::size_t i = 0; i < Rates::footprints.size() && !disturbed_; ++i) rates_at(i, machine);
  streaming(machine);
  pulling(machine);
  if (disturbed_) return std::nullopt;
  return machine;
}

void Measurement::latencies(Machine& machine) {
  std::byte* const at = part(0, 4096, 4, 0);
  const Source sources[] = {{.at = at, .scaled = false, .scalar = 0}, {.at = at + 64, .scaled = false, .scalar = 0}};
  std::byte* const to = at + 128;
  constexpr int passes = 200;
  machine.pass_us =
      1e6 / passes * best_of([&] {
        return run([&](int member) {
          for (int i = 0; member == 0 && i < passes; ++i)
            reduce_pass({.sources = sources, .destinations = {&to, 1}, .count = 2, .type = DataType::float32});
        });
      });
  if (workers_.members() < 2) return;
  machine.hop_us = 1e6 * best_of([this] { return workers_.hop(200); });
  // An action on a slot or flag and reading a call descriptor access a cache line that the other rank has; part of the
  // latency overlaps with further work.
  machine.message_us = 0.3 * machine.hop_us;
  machine.line_us = 0.3 * machine.hop_us;
}

double Measurement::copy_seconds(std::size_t footprint, bool stream) {
  return best_of([&] {
    return run([&](int member) {
      std::byte* const to = part(member, footprint, 2, 1);
      copy_pass(part(member, footprint, 2, 0), {&to, 1}, footprint / 2, stream);
    });
  });
}

double Measurement::reduce_seconds(std::size_t footprint) {
  return best_of([&] {
    return run([&](int member) {
      const auto source = [&](std::size_t i) {
        return Source{.at = part(member, footprint, 4, i), .scaled = false, .scalar = 0};
      };
      const Source sources[] = {source(0), source(1), source(2)};
      std::byte* const to = part(member, footprint, 4, 3);
      reduce_pass({.sources = sources,
                   .destinations = {&to, 1},
                   .count = footprint / 4 / sizeof(float),
                   .type = DataType::float32});
    });
  });
}

/// A copy gives the time of reading and writing together; passes with three sources separate the two.
void Measurement::rates_at(std::size_t index, Machine& machine) {
  const std::size_t footprint = Rates::footprints[index];
  const auto half = static_cast<double>(footprint) / 2;
  const double copied = copy_seconds(footprint, false) / half;
  const double reduced = reduce_seconds(footprint) / (half / 2);
  const double read = std::clamp((reduced - copied) / 2, 0.1 * copied, 0.6 * copied);
  const double write = copied - read;
  const auto gbps = [](double seconds_a_byte) { return 1e-9 / seconds_a_byte; };
  machine.read.gbps[index] = gbps(read);
  machine.write.gbps[index] = gbps(write);
  if (workers_.members() < 2) {
    machine.far_read.gbps[index] = gbps(read);
    machine.far_write.gbps[index] = gbps(write);
    return;
  }
  // In turn: each fills the memory that the other read last, then reads the memory that the other has filled.
  double filling = std::numeric_limits<double>::infinity(), reading = filling;
  (void)best_of([&] {
    const Sample fill = run([&](int member) {
      std::byte* const to = part(member, footprint, 2, 1);
      copy_pass(part(member, footprint, 2, 0), {&to, 1}, footprint / 2, false);
    });
    const Sample taken = run([&](int member) {
      std::byte* const to = part(member, footprint, 2, 0);
      copy_pass(part(1 - member, footprint, 2, 1), {&to, 1}, footprint / 2, false);
    });
    if (fill.undisturbed) filling = std::min(filling, fill.seconds);
    if (taken.undisturbed) reading = std::min(reading, taken.seconds);
    return Sample{.seconds = fill.seconds + taken.seconds, .undisturbed = fill.undisturbed && taken.undisturbed};
  });
  machine.far_write.gbps[index] = gbps(std::max(filling / half - read, write));
  machine.far_read.gbps[index] = gbps(std::max(reading / half - write, read));
}

void Measurement::streaming(Machine& machine) {
  const auto half = static_cast<double>(footprint_max) / 2;
  const double all = copy_seconds(footprint_max, true) / half;
  const double read = 1e-9 / machine.read.gbps.back();
  machine.nontemporal_gbps = 1e-9 / std::max(all - read, 0.3 * all);
}

/// The source is farther away than the second-level cache, as another rank's memory is; the destination is not.
void Measurement::pulling(Machine& machine) {
  const int pid = ::getpid();
  constexpr std::size_t large = 128 * 1024;
  constexpr std::size_t pulls = 32;
  std::array<bool, 2> can{true, true};
  const auto pulled = [&](std::size_t bytes) {
    return 1.0 / pulls * best_of([&] {
             return run([&](int member) {
               const int other = workers_.members() > 1 ? 1 - member : member;
               const std::span into(part(member, footprint_max, 2, 1), bytes);
               for (std::size_t i = 0; i < pulls; ++i)
                 if (!pull(pid, part(other, footprint_max, 2, 0) + i * large, into))
                   can[static_cast<std::size_t>(member)] = false;
             });
           });
  };
  const double small_s = pulled(64), large_s = pulled(large);
  if (!can[0] || !can[1]) return;
  machine.pull_us = 1e6 * small_s;
  machine.pull_gbps = 1e-9 * large / std::max(large_s - small_s, 0.1 * large_s);
}

}  // namespace

std::optional<Machine> measure(const cpu_set_t& cpus) {
  const auto allocate = [] {
    constexpr std::size_t alignment = 2 << 20;  // as for memory of tuttiMemAlloc
    return std::unique_ptr<void, decltype(&std::free)>(std::aligned_alloc(alignment, footprint_max), &std::free);
  };
  const auto first = allocate(), second = allocate();
  if (first == nullptr || second == nullptr) return Machine{};
  const auto measured =
      Measurement(cpus, {static_cast<std::byte*>(first.get()), static_cast<std::byte*>(second.get())}).machine();
  if (!measured) return std::nullopt;
  const auto sound = Machine::of(measured->numbers());
  return sound ? *sound : Machine{};
}

}  // namespace tutti
