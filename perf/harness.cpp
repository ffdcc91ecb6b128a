#include "perf/harness.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <numeric>
#include <optional>

#include "perf/buffers.h"
#include "perf/stdio.h"
#include "perf/sweep.h"
#include "perf/table.h"

namespace perf {
namespace {

constexpr tuttiRedOp_t native(Op op) {
  switch (op) {
    case Op::prod: return tuttiProd;
    case Op::min: return tuttiMin;
    case Op::max: return tuttiMax;
    case Op::avg: return tuttiAvg;
    default: return tuttiSum;
  }
}

/// The operator made by tuttiRedOpCreatePreMulSum for Op::mulsum, otherwise the built-in one.
class Operator {
 public:
  Operator(Op op, const Type& type, const Rank& rank) : rank_(rank), made_(op == Op::mulsum), op_(native(op)) {
    if (!made_) return;
    std::uint64_t scalar = 0;
    const double factor = Pattern::factor(rank.rank);
    store(type, &scalar, type.is_float() ? encode(type, factor) : static_cast<std::uint64_t>(factor));
    expect_success(tuttiRedOpCreatePreMulSum(&op_, &scalar, type.id, tuttiScalarHostImmediate, rank.comm), rank.comm,
                   rank.rank, "tuttiRedOpCreatePreMulSum");
  }
  ~Operator() {
    if (made_) expect_success(tuttiRedOpDestroy(op_, rank_.comm), rank_.comm, rank_.rank, "tuttiRedOpDestroy");
  }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  tuttiRedOp_t id() const { return op_; }

 private:
  const Rank& rank_;
  bool made_;
  tuttiRedOp_t op_;
};

std::uint64_t hash_of(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  return std::accumulate(at, at + bytes, std::uint64_t{0xcbf29ce484222325U},
                         [](std::uint64_t hash, unsigned char byte) { return (hash ^ byte) * 0x100000001b3U; });
}

/// All sizes, types, operators and roots of one run, on one rank. Every rank takes the same steps.
class Sweep {
 public:
  /// Rows go to `notebook` if there is one, else to the table.
  Sweep(const Description& description, const Options& options, Rank& rank, Notebook* notebook)
      : description_(description),
        options_(options),
        notebook_(notebook),
        rank_(rank),
        buffers_(description, rank, options.sizes().back(), options.buffers) {
    if (rank.gpu != nullptr)
      stream_ = rank.gpu->make_stream();
    else if (!options.blocks())
      must(tuttiStreamCreate(&stream_), "tuttiStreamCreate");
    std::vector<Place> places;
    for (const std::uint64_t word : rank.exchange.gather(Place::of_this_thread().packed()))
      places.push_back(Place::unpacked(word));
    if (rank.is_first() && notebook == nullptr) table_.emplace(description, options, rank, places);
  }
  ~Sweep() {
    if (rank_.gpu != nullptr)
      rank_.gpu->destroy(stream_);
    else if (stream_ != nullptr)
      must(tuttiStreamDestroy(stream_), "tuttiStreamDestroy");
  }
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  int run() {
    const std::vector<Op> ops = this->ops();
    for (const tuttiDataType_t type : options_.types)
      for (const Op op : ops) {
        patterns_.clear();
        for (const int root : roots()) run_sizes(type_of(type), op, root);
      }
    if (table_) return table_->finish();
    return wrong_ == 0 ? Exit::ok : Exit::wrong_values;
  }

 private:
  void must(tuttiResult_t result, std::string_view call) const { expect_success(result, rank_.comm, rank_.rank, call); }

  /// Prefixes have no average.
  std::vector<Op> ops() const {
    if (!description_.reduces) return {Op::none};
    std::vector<Op> all = options_.ops;
    if (description_.combined != nullptr) std::erase(all, Op::avg);
    if (all.empty()) fail(rank_.rank, fmt::format("{} has no avg", description_.name));
    return all;
  }

  std::vector<int> roots() const {
    if (!description_.has_root) return {-1};
    if (options_.root >= rank_.ranks) fail(rank_.rank, fmt::format("root {} of {} ranks", options_.root, rank_.ranks));
    if (options_.root >= 0) return {options_.root};
    std::vector<int> all(static_cast<std::size_t>(rank_.ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  void run_sizes(const Type& type, Op op, int root) {
    const Operator made(op, type, rank_);
    std::optional<std::size_t> last_count;
    for (const std::size_t bytes : options_.sizes()) {
      const std::size_t count = count_for(description_, bytes, type.bytes, rank_.ranks);
      if (count == last_count) continue;  // rounded up to the same count
      last_count = count;
      Call call{nullptr, nullptr, count, type.id, made.id(), root, rank_.rank, rank_.ranks, rank_.comm, stream_};
      run_row(call, type, op);
    }
  }

  void run_row(Call& call, const Type& type, Op op) {
    Row row{bytes_for(description_, call.count, type.bytes, rank_.ranks),
            call.count,
            type.name,
            name_of(op),
            call.root,
            {},
            {},
            {},
            {}};
    row.out_of_place = measure(call, type, op, false);
    row.algorithm = algorithm_;
    row.transport = transport_;
    if (options_.in_place && description_.in_place != InPlace::never) row.in_place = measure(call, type, op, true);
    if (table_) table_->add(row);
    if (notebook_ != nullptr && rank_.is_first()) notebook_->add(row);
  }

  Measured measure(Call& call, const Type& type, Op op, bool in_place) {
    buffers_.place(call, in_place);
    if (table_) table_->show_progress(call.count * type.bytes, type.name, in_place ? "in place" : "out of place");
    Measured measured;
    if (options_.checks > 0 || options_.verify) {
      measured.wrong = check(call, type, op, in_place);
      wrong_ += *measured.wrong;
    }
    measured.seconds = time(call, type, op, in_place);
    return measured;
  }

  // ---- time

  double time(const Call& call, const Type& type, Op op, bool in_place) {
    if (in_place && description_.reduces)
      buffers_.clear();
    else
      buffers_.prepare(call, in_place, pattern(type, op, 0, Data::exact));
    run_calls(call, options_.warmups, options_.aggregate);

    // A single interrupted batch of short calls says nothing about the calls: take the median of several.
    std::vector<double> batches;
    for (double spent = 0; !is_enough(batches.size(), spent); spent += batches.back())
      batches.push_back(time_batch(call));
    std::ranges::sort(batches);
    return batches[batches.size() / 2] / (options_.iterations * options_.aggregate);
  }

  /// Every rank has the same numbers, so all of them stop at the same point.
  bool is_enough(std::size_t batches, double seconds) const {
    constexpr std::size_t kFew = 3, kMany = 21;
    const bool crowded =
        rank_.ranks > ::sysconf(_SC_NPROCESSORS_ONLN);  // in this case a batch mostly waits for the system's scheduler
    return batches >= (crowded ? kFew : kMany) || (batches >= kFew && seconds > 0.02) || seconds > 0.5;
  }

  double time_batch(const Call& call) {
    rank_.exchange.barrier();
    const auto begin = std::chrono::steady_clock::now();
    run_calls(call, options_.iterations, options_.aggregate);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    note_algorithm();
    std::vector<double> seconds;
    for (const std::uint64_t bits : rank_.exchange.gather(std::bit_cast<std::uint64_t>(elapsed.count())))
      seconds.push_back(std::bit_cast<double>(bits));
    return combine(seconds);
  }

  /// Asked at once: with a launcher the following exchange is a collective too.
  void note_algorithm() {
    const char* algorithm = "";
    const char* transport = "";
    must(tuttiCommLastAlgorithm(rank_.comm, &algorithm, &transport), "tuttiCommLastAlgorithm");
    algorithm_ = *algorithm != 0 ? algorithm : "N/A";  // sends and receives have no algorithm
    transport_ = *transport != 0 ? transport : "N/A";
  }

  double combine(const std::vector<double>& seconds) const {
    switch (options_.average) {
      case Average::rank0: return seconds.front();
      case Average::mean:
        return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
      case Average::min: return *std::ranges::min_element(seconds);
      default: return *std::ranges::max_element(seconds);
    }
  }

  void run_calls(const Call& call, int calls, int aggregate) {
    for (int i = 0; i < calls; ++i) {
      if (aggregate == 1) {
        must(description_.launch(call), description_.name);
        if (options_.blocks()) complete();
        continue;
      }
      must(tuttiGroupStart(), "tuttiGroupStart");
      for (int k = 0; k < aggregate; ++k) must(description_.launch(call), description_.name);
      must(tuttiGroupEnd(), "tuttiGroupEnd");
      if (options_.blocks()) complete();
    }
    complete();
  }

  /// Waits for everything on the stream, if there is one.
  void complete() const {
    if (rank_.gpu != nullptr)
      rank_.gpu->synchronize(stream_);
    else if (stream_ != nullptr)
      must(tuttiStreamSynchronize(stream_), "tuttiStreamSynchronize");
  }

  // ---- check

  /// Number of wrong elements on all ranks, over all check calls, each with different data.
  std::size_t check(const Call& call, const Type& type, Op op, bool in_place) {
    std::size_t wrong = 0;
    for (int i = 0; i < options_.checks; ++i)
      wrong += check_once(call, in_place, pattern(type, op, 2 * i + (in_place ? 1 : 0), Data::exact));
    if (options_.verify) wrong += check_once(call, in_place, pattern(type, op, in_place ? 1 : 0, Data::random));
    return wrong;
  }

  std::size_t check_once(const Call& call, bool in_place, const Pattern& data) {
    buffers_.prepare(call, in_place, data);
    rank_.exchange.barrier();
    run_calls(call, 1, in_place ? 1 : options_.aggregate);  // in place, a second call would have other inputs
    buffers_.fetch();
    plant(call);
    std::size_t wrong = 0;
    for (const std::uint64_t of_rank : rank_.exchange.gather(buffers_.count_wrong(call, in_place, data)))
      wrong += of_rank;
    if (options_.verify && description_.expected == reduction) wrong += count_unlike(call);
    return wrong;
  }

  /// Number of ranks whose result differs from rank 0's in any bit.
  std::size_t count_unlike(const Call& call) {
    const auto hashes = rank_.exchange.gather(hash_of(buffers_.host(call.recv), call.count * type_of(call.type).bytes));
    return static_cast<std::size_t>(
        std::ranges::count_if(hashes, [&](std::uint64_t h) { return h != hashes.front(); }));
  }

  /// --plant: damages the first elements of the first result.
  void plant(const Call& call) const {
    if (options_.planted == 0 || rank_.rank != std::max(call.root, 0)) return;
    const std::size_t element = type_of(call.type).bytes;
    const std::size_t count = std::min<std::size_t>(call.count, static_cast<std::size_t>(options_.planted));
    auto* at = buffers_.host(call.recv);
    for (std::size_t i = 0; i < count; ++i) at[i * element + element - 1] ^= std::byte{0x40};
  }

  /// Kept for later sizes: making a pattern costs more than most checks.
  const Pattern& pattern(const Type& type, Op op, int seed, Data data) {
    const auto known = std::ranges::find_if(patterns_, [&](const Kept& k) { return k.seed == seed && k.data == data; });
    if (known != patterns_.end()) return *known->pattern;
    if (patterns_.size() == kMaxPatterns) patterns_.erase(patterns_.begin());
    const auto mixed = static_cast<std::uint64_t>(seed) * 2 + (data == Data::random ? 1 : 0);
    const int combined = description_.combined != nullptr ? description_.combined(rank_.rank) : 0;
    patterns_.push_back({seed, data, std::make_unique<Pattern>(type, op, rank_.ranks, mixed, data, combined)});
    return *patterns_.back().pattern;
  }

  struct Kept {
    int seed;
    Data data;
    std::unique_ptr<Pattern> pattern;
  };
  static constexpr std::size_t kMaxPatterns = 8;

  const Description& description_;
  const Options& options_;
  Notebook* notebook_;
  Rank& rank_;
  CallBuffers buffers_;
  std::optional<Table> table_;
  tuttiStream_t stream_ = nullptr;
  std::string algorithm_, transport_;  ///< of the batch timed last
  std::vector<Kept> patterns_;
  std::size_t wrong_ = 0;
};

}  // namespace

int run(int argc, char** argv, const Description& description) {
  open_closed_stdio();
  Options options;
  if (const auto code = parse(argc, argv, std::string(description.name), options)) return *code;
  const std::string program = std::string(description.name) + "_perf";
  const auto once = [&](Notebook* notebook) {
    return launch(options.launch, program,
                  [&](Rank& rank) { return Sweep(description, options, rank, notebook).run(); });
  };
  if (options.algorithms.empty()) return once(nullptr);
  return run_algorithms(description, options, [&](Notebook& notebook) { return once(&notebook); });
}

}  // namespace perf
