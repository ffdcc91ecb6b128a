// The command line of every perf program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perf/pattern.h"

namespace CLI {
class App;
}

namespace perf {

/// Exit codes of the programs.
enum Exit { ok = 0, wrong_values = 1, bad_usage = 2, failed = 3, timed_out = 4, interrupted = 130 };

/// How ranks are started.
struct LaunchOptions {
  int procs = 0;  ///< 0: not given
  int threads = 0;
  bool pin = true;
  bool parallel_init = false;
  int timeout_s = 300;
  bool on_gpu = false;  ///< buffers in device memory
  int gpus = 1;         ///< of a host, over which its processes are spread

  void add_to(CLI::App& app);

  /// The launcher that started this process as one rank ("torchrun", ...), if its environment is to be used; else
  /// empty.
  std::string launcher() const;
  int processes() const { return procs > 0 ? procs : threads > 0 ? 1 : 2; }
  int threads_each() const { return threads > 0 ? threads : 1; }
  int ranks() const { return processes() * threads_each(); }
};

enum class Buffers { tutti, malloc, mixed };
enum class Average { rank0, mean, min, max };

struct Options {
  LaunchOptions launch;
  std::size_t min_bytes = 32 << 20, max_bytes = 32 << 20, step_bytes = 1 << 20;
  int step_factor = 1;
  int iterations = 20, warmups = 5, aggregate = 1, checks = 1;
  Average average = Average::max;
  std::optional<bool> blocking;  ///< unset: calls on host memory block, others are queued, as in NCCL's tests
  std::vector<Op> ops{Op::sum};
  std::vector<tuttiDataType_t> types{tuttiFloat32};
  int root = 0;  ///< -1: all
  std::string csv;
  std::string algorithms;  ///< "all", or names separated by commas; empty: tutti's choice
  Buffers buffers = Buffers::tutti;
  bool in_place = true;
  bool verify = false;
  int planted = 0;

  bool blocks() const { return blocking.value_or(!launch.on_gpu); }
  /// min_bytes to max_bytes, by the step or the factor.
  std::vector<std::size_t> sizes() const;
  /// The command line as given, for the header block.
  std::string describe() const;
};

/// Parses the command line. If it prints help or an error instead, returns the exit code to leave with.
std::optional<int> parse(int argc, char** argv, const std::string& program, Options& options);

std::string_view name_of(Op op);
/// "8", "4K", "256M", "1G"; throws CLI::ValidationError, as CLI11 requires.
std::size_t parse_bytes(const std::string& text);

/// Runs CLI11's parser; prints help (exit code 0) or a usage error (2).
std::optional<int> parse(CLI::App& app, int argc, char** argv);

}  // namespace perf
