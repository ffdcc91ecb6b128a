#include "tune/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "base/system.h"
#include "exec/reduce.h"
#include "transport/segment.h"
#include "tune/sampler.h"
#include "tune/workers.h"

namespace tutti {
namespace {

constexpr std::size_t memory_bytes = LoopFootprints::bytes.back();  // of each member
// All ranks of a start wait for it. A quiet machine needs less.
constexpr std::int64_t budget_ns = 800'000'000;
constexpr std::int64_t hop_budget_ns = 100'000'000;

class Measurement {
 public:
  Measurement(const cpu_set_t& cpus, std::array<std::byte*, 2> memory, std::int64_t until_ns)
      : sampler_(cpus, memory, memory_bytes, until_ns) {}
  /// Nothing if other work left no time for measuring.
  std::optional<Machine> machine();
  bool loaded() const { return sampler_.loaded(); }

 private:
  using Sample = Sampler::Sample;

  void latencies(Machine& machine);
  void rates_at(std::size_t index, Machine& machine);

  /// `part` of the `parts` into which a member's first `footprint` bytes are divided.
  std::byte* part(int member, std::size_t footprint, std::size_t parts, std::size_t part) const {
    return sampler_.memory(static_cast<std::size_t>(member)) + footprint / parts * part;
  }
  double copy_seconds(std::size_t footprint);
  double reduce_seconds(std::size_t footprint);
  /// Seconds of filling memory that the other member read last, and of reading what the other has filled.
  struct Passing {
    double filling, reading;
  };
  Passing pass_on(std::size_t footprint, Loop loop);

  Sampler sampler_;
};

std::optional<Machine> Measurement::machine() {
  Machine machine;
  sampler_.begin();
  if (!sampler_.disturbed()) latencies(machine);
  for (std::size_t i = 0; i < Rates::footprints.size() && !sampler_.disturbed(); ++i) rates_at(i, machine);
  if (!sampler_.disturbed()) measure_pulls(sampler_, machine);
  if (!sampler_.disturbed()) measure_sockets(sampler_, machine);
  if (!sampler_.disturbed()) measure_loops(sampler_, machine.loops);
  if (sampler_.disturbed()) return std::nullopt;
  return machine;
}

void Measurement::latencies(Machine& machine) {
  std::byte* const at = part(0, 4096, 4, 0);
  const Source sources[] = {{.at = at, .scaled = false, .scalar = 0}, {.at = at + 64, .scaled = false, .scalar = 0}};
  std::byte* const to = at + 128;
  constexpr int passes = 200;
  machine.pass_us = 1e6 / passes * sampler_.best_of([&] {
    return sampler_.run([&](int member) {
      for (int i = 0; member == 0 && i < passes; ++i)
        reduce_pass({.sources = sources, .destinations = {&to, 1}, .count = 2, .type = DataType::float32});
    });
  });
  if (sampler_.members() < 2) return;
  machine.hop_us = 1e6 * sampler_.best_of([this] { return sampler_.hop(200); });
  // An action on a slot or flag and reading a call descriptor access a cache line that the other rank has; part of the
  // latency overlaps with further work.
  machine.message_us = 0.3 * machine.hop_us;
  machine.line_us = 0.3 * machine.hop_us;
}

double Measurement::copy_seconds(std::size_t footprint) {
  return sampler_.best_of([&] {
    return sampler_.run([&](int member) {
      std::byte* const to = part(member, footprint, 2, 1);
      copy_pass(part(member, footprint, 2, 0), {&to, 1}, footprint / 2, Loop::plain);
    });
  });
}

double Measurement::reduce_seconds(std::size_t footprint) {
  return sampler_.best_of([&] {
    return sampler_.run([&](int member) {
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
  const double copied = copy_seconds(footprint) / half;
  const double reduced = reduce_seconds(footprint) / (half / 2);
  const double read = std::clamp((reduced - copied) / 2, 0.1 * copied, 0.6 * copied);
  const double write = copied - read;
  const auto gbps = [](double seconds_a_byte) { return 1e-9 / seconds_a_byte; };
  machine.read.gbps[index] = gbps(read);
  machine.write.gbps[index] = gbps(write);
  if (sampler_.members() < 2) {
    machine.far.read.gbps[index] = gbps(read);
    machine.far.write.gbps[index] = gbps(write);
    return;
  }
  const auto passed_on = [&](Loop loop, Rates& to_read, Rates& to_write) {
    const auto [filling, reading] = pass_on(footprint, loop);
    to_write.gbps[index] = gbps(std::max(filling / half - read, write));
    to_read.gbps[index] = gbps(std::max(reading / half - write, read));
  };
  passed_on(Loop::plain, machine.far.read, machine.far.write);
  passed_on(Loop::nontemporal, machine.far.streamed_read, machine.far.streamed_write);
}

Measurement::Passing Measurement::pass_on(std::size_t footprint, Loop loop) {
  // The first round fills memory that the other has not read yet.
  double filling = std::numeric_limits<double>::infinity(), reading = filling;
  int rounds = 0;
  (void)sampler_.best_of([&] {
    const Sample fill = sampler_.run([&](int member) {
      std::byte* const to = part(member, footprint, 2, 1);
      copy_pass(part(member, footprint, 2, 0), {&to, 1}, footprint / 2, loop);
    });
    const Sample taken = sampler_.run([&](int member) {
      std::byte* const to = part(member, footprint, 2, 0);
      copy_pass(part(1 - member, footprint, 2, 1), {&to, 1}, footprint / 2, Loop::plain);
    });
    if (fill.undisturbed && rounds++ > 0) filling = std::min(filling, fill.seconds);
    if (taken.undisturbed) reading = std::min(reading, taken.seconds);
    return Sample{.seconds = fill.seconds + taken.seconds, .undisturbed = fill.undisturbed && taken.undisturbed};
  });
  return {.filling = filling, .reading = reading};
}

}  // namespace

std::optional<MeasuredNumbers> measure(const cpu_set_t& cpus) {
  const std::int64_t until_ns = real_system().now_ns() + budget_ns;
  // As users' memory is, with its kind of pages.
  SegmentTable segments;
  const auto first = segments.allocate(memory_bytes, /*touch=*/false);
  const auto second = segments.allocate(memory_bytes, /*touch=*/false);
  if (!first || !second) return MeasuredNumbers{};
  Measurement measurement(cpus, {*first, *second}, until_ns);
  const auto measured = measurement.machine();
  if (!measured) return std::nullopt;
  const auto sound = Machine::of(measured->numbers());
  return MeasuredNumbers{.machine = sound ? *sound : Machine{}, .quiet = !measurement.loaded()};
}

std::optional<double> measure_hop(const cpu_set_t& cpus) {
  Workers workers(cpus, real_system().now_ns() + hop_budget_ns);
  if (workers.members() < 2) return std::nullopt;
  constexpr int samples = 5, rounds = 100;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < samples && !workers.late(); ++i)
    if (const auto sample = workers.hop(rounds); sample.undisturbed) best = std::min(best, sample.seconds);
  return std::isfinite(best) ? std::optional(1e6 * best) : std::nullopt;
}

}  // namespace tutti
