#include "collective/packet.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace tutti {

Error nonsense(std::string_view what) {
  return {.code = Code::remote, .what = fmt::format("a message cannot be read: {}", what)};
}

Result<ArrivingPacket::Piece> ArrivingPacket::peek(Receiver& receiver, bool remote, std::size_t slot_bytes) {
  const std::size_t length = begun_ ? std::min<std::size_t>(slot_bytes, header_.bytes - moved_) : sizeof header_;
  piece_ = TUTTI_TRY(receiver.peek(remote ? length : 0));  // shared memory stores the length
  if (piece_.data() == nullptr) return Piece::none;
  if (begun_) return Piece::further;
  if (piece_.size() < sizeof header_) return nonsense("it has no header");
  std::memcpy(&header_, piece_.data(), sizeof header_);
  piece_ = piece_.subspan(sizeof header_);
  begun_ = true;
  moved_ = 0;
  into_ = nullptr;
  TUTTI_TRY(check(remote));
  return Piece::first;
}

Result<void> ArrivingPacket::check(bool remote) const {
  const auto kind = header_.kind.checked();
  if (!kind) return nonsense("its kind is unknown");
  if (!enumerator<DataType>(header_.type) || !header_.carried.carry.checked() || header_.tag < 0 ||
      header_.bytes > PTRDIFF_MAX)
    return nonsense("its header is wrong");
  const bool by_address = header_.carried.carry != Carry::slots;
  if (by_address && (*kind != PacketKind::offer || remote)) return nonsense("its data cannot be reached");
  if (*kind == PacketKind::small && header_.bytes > PacketHeader::small_bytes_max)
    return nonsense("it is too long to be small");
  return {};
}

Result<void> ArrivingPacket::take(Receiver& receiver) {
  const std::size_t left = header_.has_payload() ? header_.bytes - moved_ : 0;
  if (piece_.size() > left) return nonsense("it is longer than its header says");
  if (!piece_.empty()) std::memcpy(into_ + moved_, piece_.data(), piece_.size());
  moved_ += piece_.size();
  TUTTI_TRY(receiver.release());
  begun_ = piece_.size() < left;
  return {};
}

}  // namespace tutti
