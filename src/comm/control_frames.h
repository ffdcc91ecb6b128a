// What travels on the control connections between ranks of different hosts (see control_links.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "net/gossip.h"
#include "transport/call_summary.h"
#include "transport/rank_area.h"
#include "transport/rank_end.h"

namespace tutti {

/// Kind of a frame with state open. The text of a `calls` frame holds CallMarks. The text of `summary`, `ask` (which
/// requests an answer) and `answered` holds a CallSummary of all calls so far; that of `gossip` a Gossip, that of
/// `waits` the value of AreaHeader::waits.
enum class ControlFrame : std::uint32_t { beating, traced, calls, summary, ask, answered, gossip, waits, last = waits };

/// A frame is a head, whose last number is the length of the text that follows. A state other than open is the rank's
/// last; the text is a RankEnd then.
struct ControlFrames {
  static constexpr std::size_t head_bytes = 12;  ///< state, kind, length of the text
  static constexpr std::size_t text_max = std::max(Gossip::bytes_max, RankEnd::bytes_max);
  static constexpr std::size_t marks_max = 64;  ///< in a frame of `calls`
  static_assert(marks_max * sizeof(CallMark) <= text_max);

  static std::span<const std::byte> text(const CallSummary& of) { return std::as_bytes(std::span(&of, 1)); }
  static std::shared_ptr<const Bytes> frame(RankState state, ControlFrame kind, std::span<const std::byte> text) {
    ByteWriter writer;
    writer.number(static_cast<std::uint32_t>(state));
    writer.number(static_cast<std::uint32_t>(kind));
    writer.sized(text);
    return std::make_shared<const Bytes>(std::move(writer).take());
  }
};

}  // namespace tutti
