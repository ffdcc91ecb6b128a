#include "collective/matching.h"

#include <utility>

#include <fmt/format.h>

namespace tutti {

Unexpected& Matching::add(Unexpected message) {
  kept_bytes_ += message.kept_bytes();
  return unexpected_.emplace_back(std::move(message));
}

Result<Unexpected*> Matching::keep(Rank from, const PacketHeader& header) {
  constexpr std::size_t kept_bytes_max = std::size_t{64} << 20;
  Unexpected message{.from = from, .header = header};
  if (header.kind == PacketKind::small) message.data.resize(header.bytes);
  if (kept_bytes_ + message.kept_bytes() > kept_bytes_max)
    return Error{
        .code = Code::system,
        .what = fmt::format("more than {} MiB of messages have come that no receive takes", kept_bytes_max >> 20)};
  return &add(std::move(message));
}

void Matching::forget(const Unexpected& message) {
  kept_bytes_ -= message.kept_bytes();
  unexpected_.remove_if([&](const Unexpected& each) { return &each == &message; });
}

Unexpected* Matching::kept_for(const MessageEnvelope& wanted) {
  for (Unexpected& kept : unexpected_)
    if (!kept.taken_by && wanted.takes(kept.from, kept.header.tag)) return &kept;
  return nullptr;
}

std::shared_ptr<Message> Matching::receive_of(const Unexpected& message) {
  const auto found = std::ranges::find_if(
      posted_, [&](const auto& posted) { return posted->envelope.takes(message.from, message.header.tag); });
  if (found == posted_.end()) return nullptr;
  std::shared_ptr<Message> receive = std::move(*found);
  posted_.erase(found);
  return receive;
}

void Matching::cancel(const Message& receive) {
  std::erase_if(posted_, [&](const auto& posted) { return posted.get() == &receive; });
}

bool Matching::expects(Rank source) const {
  return std::ranges::any_of(posted_, [&](const auto& posted) { return posted->envelope.source == source; });
}

}  // namespace tutti
