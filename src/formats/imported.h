// An imported plan as a schedule, and the mapping from the schedule's steps back to positions in the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/channels.h"
#include "plan/verify.h"

namespace tutti::formats {

struct Imported {
  /// The instruction that wrote to a rank's memory in a step of the schedule.
  struct Origin {
    int step = 0;
    Rank to = 0;
    Ref dst;
    FilePosition position;
  };

  std::string name;
  Schedule schedule;
  std::uint64_t bytes_min = 0;  ///< of calls that the file is intended for: the largest buffer of a rank
  std::uint64_t bytes_max = ~std::uint64_t{0};
  std::vector<Origin> origins = {};  ///< in the order of steps
  std::string (*where)(const FilePosition&) = nullptr;
};

/// A schedule with the same transfers as the program. The timing in the instructions is dropped, except where results
/// depend on it: a transfer is made in the first step in which its sources exist and its destination may be written.
/// The program's scratch becomes scratch of the schedule, and so does all other memory where a value is only
/// temporary. Errors: invalid_argument, naming the instruction: a cycle of waits, a race, a chunk that is read before
/// it is written, chunks of two parts combined, a reduction in a collective that has none.
Result<Imported> to_schedule(ChannelProgram program);

/// As verify for schedules, with the position in the file if one caused the error. Errors: invalid_argument.
Result<Meaning> verify(const Imported& imported);

}  // namespace tutti::formats
