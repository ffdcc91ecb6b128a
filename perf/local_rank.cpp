#include "perf/local_rank.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace perf {
namespace {

struct Launcher {
  const char *rank, *local_rank;
};

constexpr Launcher kLaunchers[] = {{"RANK", "LOCAL_RANK"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"},
                                   {"PMI_RANK", "MPI_LOCALRANKID"},
                                   {"SLURM_PROCID", "SLURM_LOCALID"}};

std::optional<int> number(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  int value = -1;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  if (error != std::errc() || end != digits.end() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int> local_rank(int rank) {
  for (const Launcher& launcher : kLaunchers)
    if (number(launcher.rank) == rank)
      if (const auto local = number(launcher.local_rank)) return local;
  return std::nullopt;
}

}  // namespace perf
