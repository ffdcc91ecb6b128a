// Sizes, times and rates as people write them: 64KiB, 936ns, 400GB/s.
#pragma once

#include <string_view>

#include "base/error.h"

namespace tutti::simulator {

// Errors: invalid_argument, with the word and what it should look like. Nothing is negative.

/// B, KB, MB, GB, TB and KiB, MiB, GiB, TiB; K, M, G are those of 1024; a number alone is bytes.
Result<double> parse_bytes(std::string_view word);

/// ns, us, ms, s. In nanoseconds.
Result<double> parse_time(std::string_view word);

/// KB/s, MB/s, GB/s, TB/s; Mb/s, Gb/s and Tb/s are bits. In bytes per nanosecond. Not 0.
Result<double> parse_rate(std::string_view word);

/// Not negative.
Result<double> parse_number(std::string_view word);

}  // namespace tutti::simulator
