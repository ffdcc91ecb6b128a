// A schedule as simulators see it: each rank's sends, receives and work, and what waits for what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "plan/schedule.h"

namespace tutti::formats {

struct TrafficSize {
  std::size_t bytes = 1 << 20;    ///< of the call: the largest buffer of a rank
  double reduce_ns_per_byte = 0;  ///< of a result
  double copy_ns_per_byte = 0;    ///< inside a rank
};

/// One node of a rank's graph. Nodes wait for nodes in front of them alone.
struct TrafficNode {
  enum class Kind : std::uint8_t { send, receive, work };
  Kind kind = Kind::work;
  Rank peer = -1;  ///< of a message
  int step = 0;    ///< of the schedule; a pair of ranks has one message a step and direction
  std::size_t bytes = 0;
  std::size_t work_ns = 0;
  std::vector<int> after = {};
};

/// By rank. A message is sent when the blocks in it are made; a result is made when its operands are there and the
/// messages that read what it overwrites are sent. Errors: invalid_argument, as lowers_to says of fifos.
Result<std::vector<std::vector<TrafficNode>>> traffic(const Schedule& schedule, const TrafficSize& size);

/// Bytes of one block of `part` in a call of that size.
std::size_t block_bytes(const Schedule& schedule, int part, std::size_t bytes);

}  // namespace tutti::formats
