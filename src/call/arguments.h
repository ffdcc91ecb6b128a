// Checks the arguments that users pass, before any data moves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "call/request.h"

namespace tutti {

/// Errors: invalid_argument, which names the argument and the allowed values: a null pointer for a buffer with data; a
/// type, operator or root out of range; a count whose bytes exceed memory; send and receive buffers that overlap other
/// than in place.
Result<void> check_every_argument(const Request& request, Rank rank, int ranks);
Result<void> check_arguments(const PeerRequest& request, std::size_t count, int ranks);

/// Whether the arguments are right at a glance: buffers that exist, are not too large, and are one or far apart.
inline bool plainly_right(const Request& request, int ranks) {
  constexpr std::size_t count_max = std::size_t{1} << 40;  // of elements
  const auto input = reinterpret_cast<std::uintptr_t>(request.input);
  const auto output = reinterpret_cast<std::uintptr_t>(request.output);
  const std::uintptr_t apart = input < output ? output - input : input - output;
  const bool disjoint = apart >= request.group_bytes() * static_cast<unsigned>(ranks);
  return static_cast<unsigned>(request.root) < static_cast<unsigned>(ranks) && input != 0 && output != 0 &&
         request.count <= count_max && (disjoint || (apart == 0 && request.collective == Collective::all_reduce));
}
/// As check_every_argument, with little work for arguments that are plainly right.
inline Result<void> check_arguments(const Request& request, Rank rank, int ranks) {
  if (plainly_right(request, ranks)) [[likely]]
    return {};
  return check_every_argument(request, rank, ranks);
}

Result<DataType> other_data_type(int value);
/// With little work for the types that most calls have.
inline Result<DataType> data_type(int value) {
  if (const auto type = device_type_of_number(value)) [[likely]]
    return *type;
  return other_data_type(value);
}

}  // namespace tutti
