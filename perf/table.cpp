#include "perf/table.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace perf {
namespace {

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

/// Four significant figures: calls take from a tenth of a microsecond to seconds.
std::string figures(double value) {
  const int decimals = value >= 10000 ? 0 : value >= 1000 ? 1 : value >= 100 ? 2 : value >= 10 ? 3 : 4;
  return fmt::format("{:.{}f}", value, decimals);
}

double algorithm_bandwidth(const Row& row, const Measured& measured) {
  return measured.seconds > 0 ? static_cast<double>(row.bytes) / measured.seconds * 1e-9 : 0;
}

std::string wrong_text(const Measured& measured) {
  return measured.wrong ? fmt::format("{}", *measured.wrong) : std::string("N/A");
}

}  // namespace

Place Place::of_this_thread() {
  Place place{.pid = ::getpid()};
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1) return place;
  for (place.core = 0; !CPU_ISSET(place.core, &set);) ++place.core;
  return place;
}

std::uint64_t Place::packed() const {
  return static_cast<std::uint64_t>(core + 1) << 32 | static_cast<std::uint32_t>(pid);
}

Place Place::unpacked(std::uint64_t word) {
  return {.pid = static_cast<int>(word & 0xffff'ffff), .core = static_cast<int>(word >> 32) - 1};
}

Table::Table(const Description& description, const Options& options, const Rank& rank, const std::vector<Place>& places)
    : description_(description),
      ranks_(rank.ranks),
      checked_(options.checks > 0),
      terminal_(::isatty(STDERR_FILENO) == 1) {
  int version = 0;
  expect_success(tuttiGetVersion(&version), rank.comm, rank.rank, "tuttiGetVersion");
  fmt::print("# tutti version {}.{}.{}\n", version / 10000, version / 100 % 100, version % 100);
  fmt::print("# Collective test starting: {}_perf\n", description.name);
  fmt::print("# {}\n#\n# Using {} rank{} on {}, {} cores: {}\n", options.describe(), ranks_, ranks_ == 1 ? "" : "s",
             host_name(), ::sysconf(_SC_NPROCESSORS_ONLN), cpu_name());
  for (int i = 0; i < ranks_; ++i) {
    const Place& place = places[static_cast<std::size_t>(i)];
    fmt::print("#  Rank {:2} Pid {:6}{}\n", i, place.pid, place.core < 0 ? "" : fmt::format(" Core {:3}", place.core));
  }
  fmt::print("#\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6} {:^37} {:^37}\n", "", "", "", "", "", "out-of-place",
             "in-place");
  fmt::print("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
  for (int i = 0; i < 2; ++i) fmt::print("  {:>9}  {:>8}  {:>8}  {:>6}", "time", "algbw", "busbw", "#wrong");
  fmt::print("\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "");
  for (int i = 0; i < 2; ++i) fmt::print("  {:>9}  {:>8}  {:>8}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  fmt::print("  # algorithm over transport\n");
  std::fflush(stdout);

  if (options.csv.empty()) return;
  csv_.reset(std::fopen(options.csv.c_str(), "w"));
  if (csv_ == nullptr) fail(rank.rank, fmt::format("cannot write {}: {}", options.csv, std::strerror(errno)));
  fmt::print(csv_.get(), "collective,transport,algorithm,ranks,bytes,time_us,algbw_gbps,busbw_gbps,wrong\n");
}

void Table::add(const Row& row) {
  clear_progress();
  fmt::print("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", row.bytes, row.count, row.type, row.op, row.root);
  fmt::print("{}", cells(row, row.out_of_place));
  if (row.in_place)
    fmt::print("{}", cells(row, *row.in_place));
  else
    fmt::print("  {:>9}  {:>8}  {:>8}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  fmt::print("  # {} over {}\n", row.algorithm, row.transport);
  std::fflush(stdout);
  if (csv_ != nullptr) write_csv(row);
}

std::string Table::cells(const Row& row, const Measured& measured) {
  const double algorithm = algorithm_bandwidth(row, measured);
  const double bus = algorithm * description_.bus_factor(ranks_);
  wrong_ += measured.wrong.value_or(0);
  bandwidth_sum_ += bus;
  ++bandwidths_;
  return fmt::format("  {:>9}  {:>8}  {:>8}  {:>6}", figures(measured.seconds * 1e6), figures(algorithm), figures(bus),
                     wrong_text(measured));
}

void Table::write_csv(const Row& row) {
  const double algorithm = algorithm_bandwidth(row, row.out_of_place);
  fmt::print(csv_.get(), "{},{},{},{},{},{:.4f},{:.6f},{:.6f},{}\n", description_.name, row.transport, row.algorithm,
             ranks_, row.bytes, row.out_of_place.seconds * 1e6, algorithm, algorithm * description_.bus_factor(ranks_),
             wrong_text(row.out_of_place));
  std::fflush(csv_.get());
}

void Table::show_progress(std::size_t bytes, std::string_view type, std::string_view what) const {
  if (!terminal_) return;
  fmt::print(stderr, "\r\033[K{} {} B {}: {}", description_.name, bytes, type, what);
  std::fflush(stderr);
}

void Table::clear_progress() const {
  if (!terminal_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

int Table::finish() {
  clear_progress();
  if (checked_)
    fmt::print("# Out of bounds values : {} {}\n", wrong_, wrong_ == 0 ? "OK" : "FAILED");
  else
    fmt::print("# Out of bounds values : not checked\n");
  fmt::print("# Avg bus bandwidth    : {:.6g}\n#\n# Collective test concluded: {}_perf\n",
             bandwidths_ > 0 ? bandwidth_sum_ / bandwidths_ : 0, description_.name);
  std::fflush(stdout);
  return wrong_ == 0 ? Exit::ok : Exit::wrong_values;
}

}  // namespace perf
