#include "collective/outbox.h"

#include <cstring>

namespace tutti {

void Outbox::send(const std::shared_ptr<Message>& message, const PacketHeader& header) {
  Packet packet{.header = header, .message = message};
  if (header.has_payload()) {
    packet.payload = message->data;
    packet.bytes = message->envelope.bytes;
  }
  packets_.push_back(std::move(packet));
}

void Outbox::reply(PacketKind kind, const PacketHeader& about, const std::shared_ptr<Message>& ends) {
  packets_.push_back(
      {.header = {.kind = kind, .type = about.type, .tag = about.tag, .bytes = about.bytes, .id = about.id},
       .message = ends});
}

Result<void> Outbox::answered(const PacketHeader& header, MessageCounts& counts) {
  const auto offer = std::ranges::find(offered_, header.id, [](const auto& each) { return each.first; });
  if (offer == offered_.end()) return nonsense("it answers an offer that was not made");
  const std::shared_ptr<Message> message = std::move(offer->second);
  offered_.erase(offer);
  if (header.kind == PacketKind::taken) {
    counts.end(*message);
    return {};
  }
  PacketHeader data = PacketHeader::of(PacketKind::data, message->envelope);
  data.id = header.id;
  send(message, data);
  return {};
}

void Outbox::cancel(const Message& message) {
  std::erase_if(packets_, [&](const Packet& packet) { return packet.message.get() == &message; });
}

bool Outbox::holds_message() const {
  const auto has_message = [](const Packet& packet) { return packet.message != nullptr; };
  return !offered_.empty() || !unflushed_.empty() || std::ranges::any_of(packets_, has_message);
}

Result<void> Outbox::push(Sender& sender, bool remote, MessageCounts& counts, Stall& stall) {
  if (!waits_to_leave()) return {};
  while (!packets_.empty()) {
    auto slot = TUTTI_TRY(sender.acquire());
    if (slot.empty()) break;
    Packet& out = packets_.front();
    std::size_t used = 0;
    if (!out.begun) {
      std::memcpy(slot.data(), &out.header, sizeof out.header);
      used = sizeof out.header;
      out.begun = true;
      if (out.message) out.message->begun = true;
    }
    if (used == 0 || !remote) {
      const std::size_t piece = std::min(slot.size() - used, out.bytes - out.moved);
      if (piece > 0) std::memcpy(slot.data() + used, out.payload + out.moved, piece);
      out.moved += piece;
      used += piece;
    }
    TUTTI_TRY(sender.commit(used));
    counts.note_move();
    stall.note_move();
    if (out.moved < out.bytes) continue;
    if (out.header.kind == PacketKind::offer)
      offered_.emplace_back(out.header.id, std::move(out.message));
    else if (out.message)
      unflushed_.push_back(std::move(out.message));
    packets_.pop_front();
  }
  auto flushed = TUTTI_TRY(sender.flush());
  if (!flushed) return {};
  for (const auto& message : unflushed_) counts.end(*message);
  unflushed_.clear();
  return {};
}

}  // namespace tutti
