// How long one thing takes on a GPU: a copy, an empty kernel, a call of all ranks on one stream. perf/gpu/limits runs
// it many times and compares.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perf/gpu.h"
#include "perf/gpu/queue.h"
#include "perf/launch.h"
#include "perf/options.h"

namespace perf {
namespace {

struct What {
  std::string thing = "call";
  int ranks = 2;
  std::size_t bytes = 8192;
  int blocks = 8;
  int threads = 512;
  int queued = 1;   ///< so many, then the GPU is waited for
  int rounds = 50;  ///< of which the median counts
  bool graph = false;
};

constexpr const char* kEmpty = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry empty(.param .align 8 .b8 argument[2680]) { ret; }
)";
constexpr int kArgumentBytes = 2680;

void must(tuttiResult_t result, const char* function, tuttiComm_t comm = nullptr) {
  expect_success(result, comm, -1, function);
}

/// All ranks of one thread, which all-reduce float32 on one stream.
class Team {
 public:
  Team(const Gpu& gpu, tuttiStream_t stream, int ranks, std::size_t bytes)
      : gpu_(gpu), stream_(stream), count_(bytes / sizeof(float)), comms_(static_cast<std::size_t>(ranks)) {
    const std::vector<int> devices(comms_.size(), 0);
    must(tuttiCommInitAll(comms_.data(), ranks, devices.data()), "tuttiCommInitAll");
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<float> values(count_, static_cast<float>(rank + 1));
      inputs_.push_back(gpu.allocate(bytes));
      outputs_.push_back(gpu.allocate(bytes));
      gpu.to_device(inputs_.back(), reinterpret_cast<const std::byte*>(values.data()), bytes);
    }
  }
  ~Team() {
    for (auto* const comm : comms_) (void)tuttiCommDestroy(comm);
    for (std::byte* const at : inputs_) gpu_.free(at);
    for (std::byte* const at : outputs_) gpu_.free(at);
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void call() const {
    must(tuttiGroupStart(), "tuttiGroupStart");
    for (std::size_t i = 0; i < comms_.size(); ++i)
      must(tuttiAllReduce(inputs_[i], outputs_[i], count_, tuttiFloat32, tuttiSum, comms_[i], stream_),
           "tuttiAllReduce", comms_[i]);
    must(tuttiGroupEnd(), "tuttiGroupEnd");
  }
  void check() const {
    const auto ranks = static_cast<float>(comms_.size());
    std::vector<float> got(count_);
    for (std::byte* const output : outputs_) {
      gpu_.to_host(reinterpret_cast<std::byte*>(got.data()), output, count_ * sizeof(float));
      if (std::ranges::any_of(got, [&](float value) { return value != ranks * (ranks + 1) / 2; }))
        fail(-1, "wrong sums");
    }
  }
  std::string algorithm() const {
    const char* name = "";
    const char* transport = "";
    must(tuttiCommLastAlgorithm(comms_[0], &name, &transport), "tuttiCommLastAlgorithm");
    return name;
  }

 private:
  const Gpu& gpu_;
  tuttiStream_t stream_;
  std::size_t count_;
  std::vector<tuttiComm_t> comms_;
  std::vector<std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

/// Median, least and most microseconds of one of `what.queued`.
void report(const What& what, const GpuQueue& queue, const std::function<void()>& queue_all,
            const std::string& algorithm) {
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
  fmt::print("{:.3f} {:.3f} {:.3f} {}\n", us[us.size() / 2], us.front(), us.back(), algorithm);
}

/// What queues one thing. `team`: where that is made, if need be.
std::function<void()> thing_of(const What& what, const Gpu& gpu, GpuQueue& queue, std::unique_ptr<Team>& team) {
  if (what.thing == "copy") {
    std::byte* const from = gpu.allocate(what.bytes);
    std::byte* const to = gpu.allocate(what.bytes);
    return [=, &queue] { queue.copy(to, from, what.bytes); };
  }
  if (what.thing == "call") {
    team = std::make_unique<Team>(gpu, queue.stream(), what.ranks, what.bytes);
    return [&team] { team->call(); };
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
  GpuQueue queue(*gpu);
  std::unique_ptr<Team> team;
  const auto one = thing_of(what, *gpu, queue, team);
  one();  // the first call brings its plan to the GPU
  queue.wait();
  const std::string algorithm = team ? team->algorithm() : "-";
  const auto all = [&] {
    for (int i = 0; i < what.queued; ++i) one();
  };
  if (what.graph) {
    void* const graph = queue.capture(all);
    report(
        what, queue, [&] { queue.replay(graph); }, algorithm);
  } else {
    report(what, queue, all, algorithm);
  }
  if (team) team->check();
}

}  // namespace
}  // namespace perf

int main(int argc, char** argv) {
  using namespace perf;
  What what;
  CLI::App app(
      "Prints the median, least and most microseconds of one thing on GPU 0, and which algorithm a call took.");
  app.add_option("thing", what.thing,
                 "copy, empty (a kernel), cooperative (an empty one), call (an all-reduce of float32)")
      ->check(CLI::IsMember({"copy", "empty", "cooperative", "call"}))
      ->required();
  app.add_option("-t,--ranks", what.ranks, "Ranks of a call, all of one thread and on one stream [2]")
      ->check(CLI::Range(1, 16));
  app.add_option_function<std::string>(
      "-b,--bytes", [&](const std::string& text) { what.bytes = parse_bytes(text); }, "Of a copy or a call [8K]");
  app.add_option("--blocks", what.blocks, "Of an empty kernel [8]")->check(CLI::Range(1, 1024));
  app.add_option("--threads", what.threads, "Of a block of it [512]")->check(CLI::Range(1, 1024));
  app.add_option("--queued", what.queued, "So many one after the other, before the GPU is waited for [1]")
      ->check(CLI::Range(1, 100000));
  app.add_option("-n,--rounds", what.rounds, "Measurements, of which the median counts [50]")
      ->check(CLI::Range(1, 100000));
  app.add_flag("--graph", what.graph, "Those queued as one graph");
  if (const auto code = parse(app, argc, argv)) return *code;
  run(what);
  return 0;
}
