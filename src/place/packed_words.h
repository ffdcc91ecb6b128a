// Lists of numbers with a pattern in a few bytes: groups and orders of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace tutti {

/// Each number's difference to the one before it, and runs of differences that occurred before as a distance and a
/// length, so whatever repeats takes a few bytes: progressions, blocks, ranks dealt in turn, a list like an earlier
/// one. Numbers without a pattern take as many bytes as their differences, at most five, and one in many more.
std::vector<std::byte> packed(std::span<const std::uint32_t> words);

/// Errors: remote (not so packed, or more than `words_max` words). Takes memory for at most `words_max` words.
Result<std::vector<std::uint32_t>> unpacked(std::span<const std::byte> bytes, std::size_t words_max);

}  // namespace tutti
