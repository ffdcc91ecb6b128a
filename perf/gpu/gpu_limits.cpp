// Times one operation on a GPU: a copy, an empty kernel, a call of all ranks, or the same call of NCCL. perf/gpu/limits
// runs it many times and compares.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perf/gpu.h"
#include "perf/gpu/nccl.h"
#include "perf/gpu/queue.h"
#include "perf/gpu/team.h"
#include "perf/options.h"

namespace perf {
namespace {

struct What {
  std::string thing = "call";
  int ranks = 2;
  std::vector<std::size_t> sizes{8192};  ///< in bytes, one after another
  int blocks = 8;
  int threads = 512;
  int queued = 1;   ///< operations queued before each wait for the GPU
  int rounds = 50;  ///< the median counts
  bool graph = false;
  bool streams = false;  ///< one per rank
  std::string nccl;      ///< path of its library
};

constexpr const char* kEmpty = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry empty(.param .align 8 .b8 argument[2688]) { ret; }
)";
constexpr int kArgumentBytes = 2688;

struct Times {
  double median_us = 0;
  double least_us = 0;
  double most_us = 0;
};

/// The time of one of `what.queued` operations.
Times time(const What& what, const GpuQueue& queue, const std::function<void()>& queue_all) {
  std::vector<double> us;
  constexpr int kWarmups = 5;
  for (int round = -kWarmups; round < what.rounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    queue_all();
    queue.wait();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    if (round >= 0) us.push_back(took.count() / what.queued);
  }
  std::ranges::sort(us);
  return {.median_us = us[us.size() / 2], .least_us = us.front(), .most_us = us.back()};
}

Times time_all(const What& what, const GpuQueue& queue, const std::function<void()>& one) {
  // The first call uploads its plan to the GPU; the first calls of ranks in several launches copy their data, until all
  // ranks know each other's buffers, and a graph would do so for ever.
  constexpr std::chrono::milliseconds until_known(50);
  for (const auto began = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - began < until_known;) {
    one();
    queue.wait();
  }
  const auto all = [&] {
    for (int i = 0; i < what.queued; ++i) one();
  };
  if (!what.graph) return time(what, queue, all);
  const GpuGraph graph = queue.capture(all);
  return time(what, queue, [&] { queue.replay(graph); });
}

/// Flushes at once: the process that waits for this output must not have to wait for the next.
void print(const Times& times, const std::string& algorithm) {
  fmt::print("{:.3f} {:.3f} {:.3f} {}\n", times.median_us, times.least_us, times.most_us, algorithm);
  std::fflush(stdout);
}

void run_team(const What& what, const Gpu& gpu) {
  const auto ranks = static_cast<std::size_t>(what.ranks);
  const GpuQueue queue(gpu, what.streams ? ranks : 1);
  Sums sums(gpu, ranks, *std::ranges::max_element(what.sizes));
  std::unique_ptr<Team> team;
  if (what.thing == "nccl")
    team = std::make_unique<NcclTeam>(what.nccl, ranks);
  else
    team = std::make_unique<TuttiTeam>(ranks);
  for (const std::size_t bytes : what.sizes) {
    sums.begin(bytes);
    const Times times = time_all(what, queue, [&] { team->call(sums, queue); });
    sums.check();
    print(times, team->algorithm());
  }
}

/// The function that queues a copy or an empty kernel.
std::function<void()> thing_of(const What& what, std::size_t bytes, const Gpu& gpu, GpuQueue& queue) {
  if (what.thing == "copy") {
    std::byte* const from = gpu.allocate(bytes);
    std::byte* const to = gpu.allocate(bytes);
    return [=, &queue] { queue.copy(to, from, bytes); };
  }
  void* const kernel = queue.load(kEmpty, "empty");
  return [=, &queue] {
    std::byte argument[kArgumentBytes] = {};
    queue.launch(kernel, what.thing == "cooperative", static_cast<unsigned>(what.blocks),
                 static_cast<unsigned>(what.threads), argument);
  };
}

void run(const What& what) {
  const auto gpu = Gpu::open();
  gpu->make_current();
  if (what.thing == "call" || what.thing == "nccl") return run_team(what, *gpu);
  GpuQueue queue(*gpu);
  for (const std::size_t bytes : what.sizes) print(time_all(what, queue, thing_of(what, bytes, *gpu, queue)), "-");
}

}  // namespace
}  // namespace perf

int main(int argc, char** argv) {
  using namespace perf;
  What what;
  CLI::App app(
      "Prints the median, least and most microseconds of one thing on GPU 0, and which algorithm a call took; a line "
      "for each size.");
  app.add_option("thing", what.thing,
                 "copy, empty (a kernel), cooperative (an empty one), call (an all-reduce of float32), nccl (NCCL's)")
      ->check(CLI::IsMember({"copy", "empty", "cooperative", "call", "nccl"}))
      ->required();
  app.add_option("-t,--ranks", what.ranks, "Ranks of a call, all of one thread [2]")->check(CLI::Range(1, 16));
  app.add_option_function<std::vector<std::string>>(
         "-b,--bytes",
         [&](const std::vector<std::string>& texts) {
           what.sizes.clear();
           for (const std::string& text : texts) what.sizes.push_back(parse_bytes(text));
         },
         "Of a copy or a call [8K]; several, separated by commas, are measured in turn")
      ->delimiter(',');
  app.add_option("--blocks", what.blocks, "Of an empty kernel [8]")->check(CLI::Range(1, 1024));
  app.add_option("--threads", what.threads, "Of a block of it [512]")->check(CLI::Range(1, 1024));
  app.add_option("--queued", what.queued, "Number queued before each wait for the GPU [1]")
      ->check(CLI::Range(1, 100000));
  app.add_option("-n,--rounds", what.rounds, "Measurements, of which the median counts [50]")
      ->check(CLI::Range(1, 100000));
  app.add_flag("--graph", what.graph, "Queue them as one graph");
  app.add_flag("--streams", what.streams, "A stream for each rank of a call; NCCL's always have one");
  app.add_option("--nccl", what.nccl, "libnccl.so, 2.30 or later: required for nccl");
  if (const auto code = parse(app, argc, argv)) return *code;
  if (what.thing == "nccl" && what.nccl.empty()) {
    fmt::print(stderr, "nccl needs --nccl PATH\n");
    return Exit::bad_usage;
  }
  what.streams = what.streams || what.thing == "nccl";
  run(what);
  return 0;
}
