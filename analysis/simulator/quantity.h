// Parses sizes, times and rates with units: 64KiB, 936ns, 400GB/s.
#pragma once

#include <string_view>

#include "base/error.h"

namespace tutti::simulator {

// Errors: invalid_argument, with the word and the expected form. No value is negative.

/// B, KB, MB, GB, TB and KiB, MiB, GiB, TiB; K, M, G are powers of 1024; a number without a unit is in bytes.
Result<double> parse_bytes(std::string_view word);

/// ns, us, ms, s. In nanoseconds.
Result<double> parse_time(std::string_view word);

/// KB/s, MB/s, GB/s, TB/s; Mb/s, Gb/s and Tb/s are bits. In bytes per nanosecond. Not 0.
Result<double> parse_rate(std::string_view word);

/// Not negative.
Result<double> parse_number(std::string_view word);

}  // namespace tutti::simulator
