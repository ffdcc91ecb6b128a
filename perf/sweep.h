// --algo: the same calls by several algorithms, in comparison with each other and with the predictions.
#pragma once

#include <cstddef>
#include <functional>

#include "perf/harness.h"
#include "perf/options.h"
#include "perf/table.h"

namespace perf {

/// Results that the ranks of one run leave for the process that started them, in memory that both share. Rank 0 writes.
struct Notebook {
  struct Line {
    std::size_t bytes;
    std::size_t count;
    double out_of_place_us;
    double in_place_us;  ///< negative: not measured
    std::size_t wrong;
    char algorithm[40];
    char transport[16];
  };
  static constexpr std::size_t lines_max = 256, text_max = 1 << 20;

  std::size_t count = 0;
  Line lines[lines_max] = {};
  std::size_t text_bytes = 0;
  char text[text_max] = {};  ///< tuttiCommExplain's text for each size, each ended by 0

  void add(const Row& row);
};

/// The run of a program whose options name algorithms. `once` runs a single algorithm and leaves its rows in the
/// notebook.
int run_algorithms(const Description& description, const Options& options,
                   const std::function<int(Notebook& notebook)>& once);

}  // namespace perf
