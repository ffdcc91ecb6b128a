// One call, as the communicator takes it: checked arguments, no defaults left.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/types.h"
#include "transport/call_line.h"

namespace tutti {

struct Request {
  Collective collective = Collective::barrier;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::size_t count = 0;  ///< elements of one group
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t scalar = 0;  ///< pre-multiplied sum: bits of the type
  Rank root = 0;

  std::size_t group_bytes() const { return count * size_of(type); }
  Signature signature() const {
    return {.collective = static_cast<std::uint8_t>(collective),
            .type = static_cast<std::uint8_t>(type),
            .op = static_cast<std::uint8_t>(op),
            .root = static_cast<std::uint32_t>(root),
            .count = count};
  }
};

struct PeerRequest {
  bool send = true;
  std::byte* data = nullptr;  ///< only read when sending
  std::size_t bytes = 0;
  DataType type = DataType::uint8;
  Rank peer = 0;
};

}  // namespace tutti
