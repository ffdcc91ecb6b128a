// The messages between FdServer and fetch_segment. Both ends run the same build: the start checks this before any
// fetch.
#pragma once

#include <cstdint>

#include "base/enumeration.h"
#include "transport/fd_server.h"

namespace tutti {

struct FdRequest {
  static constexpr std::uint32_t watch = 0;  ///< replaces an id, which is never 0: keep the connection
  static constexpr std::uint64_t magic_value = 0x3164'6665'6974'7574;  // "tutiefd1"
  std::uint64_t magic = magic_value;
  ProcessKey key{};
  std::uint32_t id = 0;
  std::uint32_t generation = 0;
};
static_assert(sizeof(FdRequest) == 48);

enum class FdStatus : std::uint32_t { granted = 0, refused = 1, unknown = 2, no_descriptor = 3, last = no_descriptor };

struct FdReply {
  std::uint64_t magic = FdRequest::magic_value;
  Unchecked<FdStatus> status = FdStatus::refused;
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(FdReply) == 24);

}  // namespace tutti
