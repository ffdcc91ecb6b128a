// What all formats of plan files have in common: limits, names of collectives, the form of error messages.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "plan/types.h"

namespace tutti::formats {

// A file that exceeds one of these is refused before memory or time is spent on it.
inline constexpr int ranks_max = 1024;
inline constexpr int channels_max = 1 << 14;     // thread blocks, of all ranks
inline constexpr int chunks_max = 1 << 16;       // of one buffer
inline constexpr int blocks_max = 1 << 22;       // chunks in all buffers of all ranks
inline constexpr int moves_max = 1 << 20;        // chunks moved, by all instructions
inline constexpr int steps_max = 1 << 19;        // instructions of all ranks
inline constexpr long order_work_max = 1 << 25;  // entries of vector clocks examined

/// invalid_argument: "line 3, gpu 0, tb 1, step 4: srcoff 9 is not one of 0 … 7".
inline Error refused(std::string_view where, std::string_view why) {
  return Error{.code = Code::invalid_argument, .what = fmt::format("{}: {}", where, why)};
}

inline constexpr std::pair<std::string_view, Collective> collectives[] = {
    {"allreduce", Collective::all_reduce},
    {"allgather", Collective::all_gather},
    {"reduce_scatter", Collective::reduce_scatter},
    {"reducescatter", Collective::reduce_scatter},
    {"reduce", Collective::reduce},
    {"broadcast", Collective::broadcast},
    {"alltoall", Collective::all_to_all},
};

constexpr std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace tutti::formats
