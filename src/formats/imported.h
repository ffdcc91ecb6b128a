// A plan from elsewhere as a schedule, and the way back from a schedule's steps to the places in its file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/channels.h"
#include "plan/verify.h"

namespace tutti::formats {

struct Imported {
  /// Which instruction wrote into which rank's memory in a step of the schedule.
  struct Origin {
    int step = 0;
    Rank to = 0;
    Ref dst;
    Place place;
  };

  std::string name;
  Schedule schedule;
  std::uint64_t bytes_min = 0;  ///< of calls that the file is meant for: the largest buffer of a rank
  std::uint64_t bytes_max = ~std::uint64_t{0};
  std::vector<Origin> origins = {};  ///< in the order of steps
  std::string (*where)(const Place&) = nullptr;
};

/// The schedule that moves what the program moves. What instructions say of time is lost but for what their results
/// depend on: a transfer is made in the first step in which its sources are there and its destination may be written.
/// The program's scratch becomes the schedule's, and so does every other place where a value lies only for a while.
/// Errors: invalid_argument, naming the instruction: a circle of waits, a race, a chunk that is read before anything is
/// in it, chunks of two parts combined, a reduction in a collective that has none.
Result<Imported> to_schedule(ChannelProgram program, std::string name);

/// verify, with the place in the file where one is to blame. Errors: invalid_argument.
Result<Meaning> verify(const Imported& imported);

}  // namespace tutti::formats
