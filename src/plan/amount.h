// The size of a message, for errors.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "plan/types.h"

namespace tutti {

/// For example "100 x float32". `type` may be any number, because it may come from a peer.
inline std::string amount(std::uint64_t bytes, std::uint32_t type) {
  const auto known = enumerator<DataType>(type);
  if (!known) return fmt::format("{} bytes of a type {}", bytes, type);
  return fmt::format("{} x {}", bytes / size_of(*known), name(*known));
}

}  // namespace tutti
