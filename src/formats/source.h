// Limits of plan files, and the form of error messages about them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

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
Error refused(std::string_view place, std::string_view why);

}  // namespace tutti::formats
