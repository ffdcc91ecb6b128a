// The output: nccl-tests' table on standard output, the CSV file, and progress on a terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "perf/harness.h"
#include "perf/launch.h"

namespace perf {

/// One measured direction of a row.
struct Measured {
  double seconds = 0;
  std::optional<std::size_t> wrong;  ///< nothing: not checked
};

struct Row {
  std::size_t bytes;
  std::size_t count;
  std::string_view type, op;
  int root;  ///< -1: none
  Measured out_of_place;
  std::optional<Measured> in_place;
  std::string algorithm, transport;
};

/// Where a rank runs.
struct Place {
  int pid = 0;
  int core = -1;  ///< the only one that it may use; -1: it may use several

  static Place of_this_thread();
  std::uint64_t packed() const;
  static Place unpacked(std::uint64_t word);
};

class Table {
 public:
  /// Prints the header block. `places` is by rank. Ends the program if the CSV file cannot be written.
  Table(const Description& description, const Options& options, const Rank& rank, const std::vector<Place>& places);

  void add(const Row& row);
  /// Shows what is being measured, on a terminal only.
  void show_progress(std::size_t bytes, std::string_view type, std::string_view what) const;
  /// Prints the summary. Returns the exit code.
  int finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void clear_progress() const;
  std::string cells(const Row& row, const Measured& measured);
  void write_csv(const Row& row);

  const Description& description_;
  int ranks_;
  bool checked_;
  bool terminal_;
  std::unique_ptr<std::FILE, Close> csv_;
  std::size_t wrong_ = 0;
  double bandwidth_sum_ = 0;
  int bandwidths_ = 0;
};

}  // namespace perf
