// A schedule in the form that simulators need: each rank's sends, receives and work, and their dependencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::formats {

struct TrafficSize {
  std::size_t bytes = 1 << 20;    ///< of the call: the largest buffer of a rank
  double reduce_ns_per_byte = 0;  ///< per byte of a result
  double copy_ns_per_byte = 0;    ///< per byte, inside a rank
};

/// One node of a rank's graph. A node waits only for nodes before it.
struct TrafficNode {
  enum class Kind : std::uint8_t { send, receive, work };
  Kind kind = Kind::work;
  Rank peer = -1;  ///< of a message
  int step = 0;    ///< of the schedule; a pair of ranks has one message per step and direction
  std::size_t bytes = 0;
  std::size_t work_ns = 0;
  std::vector<int> after = {};
};

/// By rank. A message is sent when its blocks are made. A result is made when its operands exist and the messages that
/// read the memory it overwrites have been sent. Errors: invalid_argument, as lowers_to for slots.
Result<std::vector<std::vector<TrafficNode>>> traffic(const Schedule& schedule, const TrafficSize& size);

/// Bytes of one block of `part` in a call of `bytes`.
std::size_t block_bytes(const Schedule& schedule, int part, std::size_t bytes);

}  // namespace tutti::formats
