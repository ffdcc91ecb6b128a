// Measures how long a training step waits for its gradients: all-reduces those of real models, bucket by bucket.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "perf/launch.h"
#include "perf/models.h"
#include "perf/pattern.h"
#include "perf/stdio.h"

namespace {

constexpr std::size_t kMiB = 1 << 20;

struct GradientOptions {
  perf::LaunchOptions launch;
  std::string model = "resnet50";
  std::string types = "float";
  std::size_t bucket_mb = 25;
  int steps = 10;
  int warmups = 2;
};

std::optional<int> parse(int argc, char** argv, GradientOptions& o) {
  CLI::App app{"All-reduces the gradients of real models in DistributedDataParallel's buckets.", "gradients_perf"};
  o.launch.add_to(app);
  app.add_option("--model", o.model, "resnet50 or bert-base [resnet50]")
      ->check(CLI::IsMember({"resnet50", "bert-base"}));
  app.add_option("--dtype", o.types, "float, bfloat16 or all [float]")
      ->check(CLI::IsMember({"float", "bfloat16", "all"}));
  app.add_option("--bucket-mb", o.bucket_mb, "Bytes of a full bucket, in MiB [25]")->check(CLI::Range(1, 1 << 16));
  app.add_option("-n,--iters", o.steps, "Timed steps [10]")->check(CLI::Range(1, 1 << 20));
  app.add_option("-w,--warmup_iters", o.warmups, "Steps before, not timed [2]")->check(CLI::Range(0, 1 << 20));
  return perf::parse(app, argc, argv);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Times of one bucket, or of a whole step, over all steps.
struct Times {
  std::vector<double> seconds;

  std::string text(std::size_t bytes, int ranks) const {
    const double middle = median(seconds);
    const double bus = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes) / middle * 1e-9;
    return fmt::format("{:>10.1f}  {:>10.1f}  {:>10.1f}  {:>8.3f}", middle * 1e6,
                       *std::ranges::min_element(seconds) * 1e6, *std::ranges::max_element(seconds) * 1e6, bus);
  }
};

/// The gradients of one model in one type, on one rank.
class Gradients {
 public:
  Gradients(perf::Rank& rank, const perf::Type& type, std::vector<perf::Bucket> buckets)
      : rank_(rank), type_(type), buckets_(std::move(buckets)), times_(buckets_.size()) {
    for (const perf::Bucket& bucket : buckets_) {
      void* at = nullptr;
      must(tuttiMemAlloc(&at, bucket.elements * type.bytes), "tuttiMemAlloc");
      memory_.emplace_back(at);
    }
  }

  /// Number of wrong elements on all ranks after one step with known data.
  std::size_t check() {
    const perf::Pattern pattern(type_, perf::Op::avg, rank_.ranks, 0, perf::Data::exact);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) pattern.fill(memory_[i].get(), buckets_[i].elements, rank_.rank);
    rank_.exchange.barrier();
    for (std::size_t i = 0; i < buckets_.size(); ++i) reduce(i);
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      wrong += pattern.count_wrong(memory_[i].get(), buckets_[i].elements, perf::Pattern::kAllRanks, 0);
    std::size_t sum = 0;
    for (const std::uint64_t of_rank : rank_.exchange.gather(wrong)) sum += of_rank;
    return sum;
  }

  void warm_up(int steps) {
    for (int step = 0; step < steps; ++step)
      for (std::size_t i = 0; i < buckets_.size(); ++i) reduce(i);
  }

  /// Times each bucket and the step; the slowest rank's time counts.
  void time(int steps) {
    std::vector<double> marks(buckets_.size() + 1);
    for (int step = 0; step < steps; ++step) {
      rank_.exchange.barrier();
      marks[0] = now();
      for (std::size_t i = 0; i < buckets_.size(); ++i) {
        reduce(i);
        marks[i + 1] = now();
      }
      for (std::size_t i = 0; i < buckets_.size(); ++i) times_[i].seconds.push_back(slowest(marks[i + 1] - marks[i]));
      step_.seconds.push_back(slowest(marks.back() - marks.front()));
    }
  }

  void print(std::string_view model, std::size_t wrong) const {
    std::size_t tensors = 0, elements = 0;
    for (const perf::Bucket& bucket : buckets_) tensors += bucket.tensors, elements += bucket.elements;
    fmt::print("# {}, {}: {} tensors, {} parameters, {:.1f} MiB in {} buckets; {} ranks, average, in place\n", model,
               type_.name, tensors, elements, static_cast<double>(elements * type_.bytes) / kMiB, buckets_.size(),
               rank_.ranks);
    fmt::print("# {:>6}  {:>8}  {:>10}  {:>10}  {:>10}  {:>10}  {:>8}\n", "bucket", "tensors", "size(MiB)",
               "median(us)", "min(us)", "max(us)", "GB/s bus");
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      line(fmt::format("{}", i), buckets_[i].tensors, buckets_[i].elements, times_[i]);
    line("step", tensors, elements, step_);
    fmt::print("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
    std::fflush(stdout);
  }

 private:
  struct Free {
    void operator()(void* at) const { tuttiMemFree(at); }
  };

  void must(tuttiResult_t result, std::string_view call) const {
    perf::expect_success(result, rank_.comm, rank_.rank, call);
  }

  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  void reduce(std::size_t i) {
    void* at = memory_[i].get();
    must(tuttiAllReduce(at, at, buckets_[i].elements, type_.id, tuttiAvg, rank_.comm, nullptr), "tuttiAllReduce");
  }

  double slowest(double seconds) {
    double most = 0;
    for (const std::uint64_t bits : rank_.exchange.gather(std::bit_cast<std::uint64_t>(seconds)))
      most = std::max(most, std::bit_cast<double>(bits));
    return most;
  }

  void line(std::string_view name, std::size_t tensors, std::size_t elements, const Times& times) const {
    const std::size_t bytes = elements * type_.bytes;
    fmt::print("{:>8}  {:>8}  {:>10.2f}  {}\n", name, tensors, static_cast<double>(bytes) / kMiB,
               times.text(bytes, rank_.ranks));
  }

  perf::Rank& rank_;
  const perf::Type& type_;
  std::vector<perf::Bucket> buckets_;
  std::vector<std::unique_ptr<void, Free>> memory_;
  std::vector<Times> times_;
  Times step_;
};

int run_rank(const GradientOptions& options, perf::Rank& rank) {
  const perf::Shapes shapes = options.model == "resnet50" ? perf::resnet50() : perf::bert_base();
  std::size_t all_wrong = 0;
  for (const tuttiDataType_t id : {tuttiFloat32, tuttiBfloat16}) {
    const perf::Type& type = perf::type_of(id);
    if (options.types != "all" && options.types != type.name) continue;
    Gradients gradients(rank, type, perf::buckets_of(shapes, type.bytes, kMiB, options.bucket_mb * kMiB));
    const std::size_t wrong = gradients.check();
    gradients.warm_up(options.warmups);
    gradients.time(options.steps);
    if (rank.is_first()) gradients.print(options.model, wrong);
    all_wrong += wrong;
  }
  return all_wrong == 0 ? perf::Exit::ok : perf::Exit::wrong_values;
}

}  // namespace

int main(int argc, char** argv) {
  perf::open_closed_stdio();
  GradientOptions options;
  if (const auto code = parse(argc, argv, options)) return *code;
  return perf::launch(options.launch, "gradients_perf", [&](perf::Rank& rank) { return run_rank(options, rank); });
}
