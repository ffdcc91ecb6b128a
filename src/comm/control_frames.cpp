#include "comm/control_frames.h"

#include <utility>

namespace tutti {

std::shared_ptr<const Bytes> ControlFrames::frame(RankState state, ControlFrame kind, std::span<const std::byte> text) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(state));
  writer.number(static_cast<std::uint32_t>(kind));
  writer.sized(text);
  return std::make_shared<const Bytes>(std::move(writer).take());
}

}  // namespace tutti
