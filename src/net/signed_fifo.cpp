#include "net/signed_fifo.h"

#include <cstring>

namespace tutti {

Result<std::span<std::byte>> SignedSender::acquire() {
  if (said_ != mark_.sequence) {
    auto slot = through_->acquire();
    if (!slot || slot->data() == nullptr) return slot;
    std::memcpy(slot->data(), &mark_, sizeof mark_);
    TUTTI_TRY(through_->commit(sizeof mark_));
    said_ = mark_.sequence;
  }
  return through_->acquire();
}

/// True once the mark of this call has been received.
Result<bool> SignedReceiver::hear() {
  if (heard_ == mark_.sequence) return true;
  const auto message = TUTTI_TRY(through_->peek(sizeof mark_));
  if (message.data() == nullptr) return false;
  CallMark theirs;
  if (message.size() != sizeof theirs) return remote_error("a message has no mark of its call", peer_);
  std::memcpy(&theirs, message.data(), sizeof theirs);
  if (theirs.sequence != mark_.sequence || !(theirs.signature == mark_.signature)) return judge_(theirs);
  TUTTI_TRY(through_->release());
  heard_ = mark_.sequence;
  return true;
}

Result<std::span<const std::byte>> SignedReceiver::peek(std::size_t bytes) {
  if (heard_ != mark_.sequence && lands_ != nullptr) lands_->read_ahead(true);
  return TUTTI_TRY(hear()) ? through_->peek(bytes) : std::span<const std::byte>();
}

Result<std::span<const std::byte>> SignedReceiver::expect(std::size_t bytes) {
  if (heard_ != mark_.sequence) lands_->read_ahead(false);
  return TUTTI_TRY(hear()) ? lands_->expect(bytes) : std::span<const std::byte>();
}

}  // namespace tutti
