#include "adapters/mpi/statistics.h"

#include <string_view>

#include <fmt/format.h>

namespace tutti::mpi {
namespace {

constexpr std::array<std::string_view, function_count> names = {
    "barrier",
#define FUNCTION(Name, name, ...) #name,
#include "adapters/mpi/functions.inc"
#undef FUNCTION
};

constexpr std::array<std::string_view, outcome_count> words = {"tutti",
                                                               "one rank",
                                                               "no data",
                                                               "intercommunicator",
                                                               "ranks of another MPI_COMM_WORLD",
                                                               "datatype",
                                                               "operator",
                                                               "operator, too long",
                                                               "non-blocking before the first blocking call",
                                                               "tutti could not start",
                                                               "wrong arguments"};

std::string name_of(std::size_t function, bool waits) {
  std::string name(names[function]);
  if (waits) name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return (waits ? "MPI_" : "MPI_I") + name;
}

}  // namespace

Statistics::Numbers Statistics::numbers() const {
  Numbers now;
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = numbers_[i].load(std::memory_order_relaxed);
  return now;
}

std::string Statistics::text(const Numbers& numbers, int ranks) {
  std::string text = fmt::format("tutti: collective calls of {} ranks, and who served them\n{:<26}{:>10}{:>10}  why\n",
                                 ranks, "", "tutti", "MPI");
  long all = 0, ours = 0;
  for (std::size_t row = 0; row < names.size() * 2; ++row) {
    const auto* const cells = &numbers[row * outcome_count];
    long here = 0, there = 0;
    std::string why;
    for (std::size_t i = 0; i < outcome_count; ++i) {
      const bool by_tutti = served(static_cast<Outcome>(i));
      (by_tutti ? here : there) += cells[i];
      if (cells[i] > 0 && i > 0) why += fmt::format("{}{} {}", why.empty() ? "" : ", ", words[i], cells[i]);
    }
    if (here + there == 0) continue;
    text += fmt::format("{:<26}{:>10}{:>10}  {}\n", name_of(row / 2, row % 2 == 0), here, there, why);
    all += here + there;
    ours += here;
  }
  const double share = all == 0 ? 0 : 100.0 * static_cast<double>(ours) / static_cast<double>(all);
  return text + fmt::format("{:<26}{:>10}{:>10}  {:.1f} % by tutti\n", "all", ours, all - ours, share);
}

}  // namespace tutti::mpi
