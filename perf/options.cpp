#include "perf/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace perf {
namespace {

constexpr int kMaxRanks = 256;
constexpr std::array<std::string_view, 7> kOpNames{"none", "sum", "prod", "min", "max", "avg", "mulsum"};

std::string type_names() {
  std::string names;
  for (const Type& type : types()) names += fmt::format("{}{}", names.empty() ? "" : " ", type.name);
  return names;
}

std::vector<Op> parse_ops(const std::string& text) {
  std::vector<Op> found;
  for (std::size_t i = 1; i < kOpNames.size(); ++i)
    if (text == "all" || text == kOpNames[i]) found.push_back(static_cast<Op>(i));
  if (found.empty()) throw CLI::ValidationError("--op", "no such operation: " + text);
  return found;
}

std::vector<tuttiDataType_t> parse_types(const std::string& text) {
  std::vector<tuttiDataType_t> found;
  for (const Type& type : types())
    if (text == "all" || text == type.name) found.push_back(type.id);
  if (found.empty()) throw CLI::ValidationError("--datatype", "no such type: " + text);
  return found;
}

int parse_root(const std::string& text) {
  if (text == "all") return -1;
  std::size_t used = 0;
  const bool is_number = text.size() < 7 && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
  const int root = is_number ? std::stoi(text, &used) : -1;
  if (!is_number || used != text.size()) throw CLI::ValidationError("--root", "not a rank, and not all: " + text);
  return root;
}

void add_sizes(CLI::App& app, Options& o) {
  app.add_option_function<std::string>(
         "-b,--minbytes", [&o](const std::string& s) { o.min_bytes = parse_bytes(s); }, "Smallest size [32M]")
      ->group("Sizes");
  app.add_option_function<std::string>(
         "-e,--maxbytes", [&o](const std::string& s) { o.max_bytes = parse_bytes(s); },
         "Largest size [32M, or -b if that is more]")
      ->group("Sizes");
  app.add_option_function<std::string>(
         "-i,--stepbytes", [&o](const std::string& s) { o.step_bytes = parse_bytes(s); }, "Step from size to size [1M]")
      ->group("Sizes");
  app.add_option("-f,--stepfactor", o.step_factor, "Factor from size to size, in place of -i")
      ->check(CLI::Range(1, 1 << 20))
      ->group("Sizes");
}

void add_measurement(CLI::App& app, Options& o) {
  const std::string group = "Measurement";
  app.add_option("-n,--iters", o.iterations, "Timed calls of a batch; the median batch is shown")
      ->check(CLI::Range(1, 1 << 30))
      ->group(group);
  app.add_option("-w,--warmup_iters", o.warmups, "Calls before, not timed")
      ->check(CLI::Range(0, 1 << 30))
      ->group(group);
  app.add_option("-m,--agg_iters", o.aggregate, "Calls per group")->check(CLI::Range(1, 1 << 20))->group(group);
  app.add_option_function<int>(
         "-a,--average", [&o](const int& v) { o.average = static_cast<Average>(v); },
         "Time shown: 0 rank 0's, 1 mean of the ranks, 2 least, 3 most [3]")
      ->check(CLI::Range(0, 3))
      ->group(group);
  app.add_option("-z,--blocking", o.blocking,
                 "1: each call returns when complete; 0: calls are queued on a stream [1; device memory: 0]")
      ->group(group);
  app.add_option_function<std::string>(
         "--buffers",
         [&o](const std::string& s) {
           o.buffers = s == "tutti" ? Buffers::tutti : s == "malloc" ? Buffers::malloc : Buffers::mixed;
         },
         "Memory: tuttiMemAlloc, malloc, or malloc on odd ranks only [tutti]")
      ->check(CLI::IsMember({"tutti", "malloc", "mixed"}))
      ->group(group);
  app.add_flag("--inplace,!--no-inplace", o.in_place, "Measure in place too [yes]")->group(group);
  app.add_option("--algo", o.algorithms,
                 "Measure each of these algorithms (names with commas, or all), with the predictions")
      ->group(group);
  app.add_option("--csv", o.csv, "Write the out-of-place rows to this file too")->group(group);
}

void add_what(CLI::App& app, Options& o) {
  app.add_option_function<std::string>(
         "-o,--op", [&o](const std::string& s) { o.ops = parse_ops(s); }, "sum prod min max avg mulsum, or all [sum]")
      ->group("Call");
  app.add_option_function<std::string>(
         "-d,--datatype", [&o](const std::string& s) { o.types = parse_types(s); }, type_names() + ", or all [float]")
      ->group("Call");
  app.add_option_function<std::string>(
         "-r,--root", [&o](const std::string& s) { o.root = parse_root(s); }, "A rank, or all [0]")
      ->group("Call");
}

void add_checks(CLI::App& app, Options& o) {
  app.add_option("-c,--check", o.checks, "Calls whose every result element is compared; 0: none")
      ->check(CLI::Range(0, 1 << 20))
      ->group("Check");
  app.add_flag("--verify", o.verify, "Also compare random floats with a float64 reference, and ranks bit by bit")
      ->group("Check");
  app.add_option("--plant", o.planted, "Self-test: damage this many result elements; they must show as wrong")
      ->check(CLI::Range(0, 1 << 20))
      ->group("Check");
}

}  // namespace

void LaunchOptions::add_to(CLI::App& app) {
  const std::string group = "Ranks";
  app.add_option("-t,--nthreads", threads, "Ranks as threads of each process")
      ->check(CLI::Range(1, kMaxRanks))
      ->group(group);
  app.add_option("--procs", procs, "Processes [2, or 1 with -t, or the launcher's]")
      ->check(CLI::Range(1, kMaxRanks))
      ->group(group);
  app.add_option("-p,--parallel_init", parallel_init, "1: each thread initialises its own rank")->group(group);
  app.add_flag("--pin,!--no-pin", pin, "Rank i of a host runs on core i mod cores [yes]")->group(group);
  app.add_option_function<std::string>(
         "--memory", [this](const std::string& s) { on_gpu = s == "device"; },
         "Where buffers lie: host, or device: the GPU of the process [host]")
      ->check(CLI::IsMember({"host", "device"}))
      ->group(group);
  app.add_option("--gpus", gpus,
                 "With --memory device: process i uses GPU i mod this number; one that a launcher started, the first "
                 "that it sees [1]")
      ->check(CLI::Range(1, 64))
      ->group(group);
  app.add_option("-T,--timeout", timeout_s, "Limit of the whole run in seconds [300]")
      ->check(CLI::Range(1, 1 << 24))
      ->group(group);
}

std::string LaunchOptions::launcher() const {
  if (procs > 0 || threads > 0) return "";
  const auto has = [](const char* name) { return std::getenv(name) != nullptr; };
  if (has("TUTTI_RANK") && has("TUTTI_NRANKS")) return "TUTTI_RANK";
  if (has("RANK") && has("WORLD_SIZE")) return "torchrun";
  if (has("OMPI_COMM_WORLD_RANK")) return "Open MPI";
  if (has("PMIX_RANK") && has("PMIX_NAMESPACE")) return "PMIx";
  if (has("PMI_RANK") && has("MPI_LOCALNRANKS")) return "hydra";
  if (has("SLURM_PROCID") && has("SLURM_STEP_ID")) return "Slurm";
  return "";
}

std::vector<std::size_t> Options::sizes() const {
  std::vector<std::size_t> list;
  for (std::size_t bytes = min_bytes; bytes <= max_bytes;) {
    list.push_back(bytes);
    const std::size_t next =
        step_factor > 1 ? std::max<std::size_t>(bytes * static_cast<std::size_t>(step_factor), 1) : bytes + step_bytes;
    if (next <= bytes) break;
    bytes = next;
  }
  return list;
}

std::string Options::describe() const {
  constexpr std::array<std::string_view, 3> kBuffers{"tutti", "malloc", "mixed"};
  const std::string step =
      step_factor > 1 ? fmt::format("{}(factor)", step_factor) : fmt::format("{}(bytes)", step_bytes);
  return fmt::format(
      "minBytes {} maxBytes {} step: {} warmup iters: {} iters: {} agg iters: {} validation: {} blocking: {} buffers: "
      "{}{}",
      min_bytes, max_bytes, step, warmups, iterations, aggregate, checks, blocks() ? 1 : 0,
      launch.on_gpu ? "" : kBuffers[static_cast<std::size_t>(buffers)], launch.on_gpu ? "device memory" : "");
}

std::optional<int> parse(int argc, char** argv, const std::string& program, Options& options) {
  CLI::App app{"Measures and checks tutti's " + program + " over a range of sizes.", program + "_perf"};
  options.launch.add_to(app);
  add_sizes(app, options);
  add_what(app, options);
  add_measurement(app, options);
  add_checks(app, options);
  if (const auto code = parse(app, argc, argv)) return code;
  if (app.count("--maxbytes") == 0) options.max_bytes = std::max(options.max_bytes, options.min_bytes);

  const LaunchOptions& launch = options.launch;
  std::string error;
  if (options.max_bytes < options.min_bytes) error = "--maxbytes is less than --minbytes";
  if (launch.ranks() > kMaxRanks) error = fmt::format("{} ranks: at most {}", launch.ranks(), kMaxRanks);
  if (launch.launcher().empty() && options.root >= launch.ranks()) error = "--root is not one of the ranks";
  if (options.planted > 0 && options.checks == 0) error = "--plant needs --check";
  if (error.empty()) return std::nullopt;
  fmt::print(stderr, "{}_perf: {}\n", program, error);
  return Exit::bad_usage;
}

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? Exit::ok : Exit::bad_usage;
  }
}

std::string_view name_of(Op op) {
  return kOpNames[static_cast<std::size_t>(op)];
}

std::size_t parse_bytes(const std::string& text) {
  const auto digits = static_cast<std::size_t>(
      std::ranges::find_if(text, [](unsigned char c) { return std::isdigit(c) == 0; }) - text.begin());
  const std::string unit = text.substr(digits);
  const int shift = unit.empty()                 ? 0
                    : unit == "K" || unit == "k" ? 10
                    : unit == "M" || unit == "m" ? 20
                    : unit == "G" || unit == "g" ? 30
                                                 : -1;
  if (digits == 0 || digits > 15 || shift < 0)
    throw CLI::ValidationError("size", "not a size like 8, 4K, 256M or 1G: " + text);
  return static_cast<std::size_t>(std::stoull(text.substr(0, digits))) << shift;
}

}  // namespace perf
