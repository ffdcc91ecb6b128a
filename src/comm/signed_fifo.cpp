#include "comm/signed_fifo.h"

#include <cstring>

#include "call/mismatch.h"

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
  auto message = through_->peek(sizeof mark_);
  if (!message) return std::move(message).error();
  if (message->data() == nullptr) return false;
  CallMark theirs;
  if (message->size() != sizeof theirs)
    return Error{.code = Code::remote, .what = "a message has no mark of its call", .peer = peer_};
  std::memcpy(&theirs, message->data(), sizeof theirs);
  if (theirs.sequence != mark_.sequence || !(theirs.signature == mark_.signature)) return judge(theirs);
  TUTTI_TRY(through_->release());
  heard_ = mark_.sequence;
  return true;
}

/// If the numbers of the calls differ, an earlier call differed. Either this rank's history shows which call, or
/// CallComparison finds it within a moment, so wait for that at most a second.
Result<bool> SignedReceiver::judge(const CallMark& theirs) {
  constexpr std::int64_t name_limit_ns = 1'000'000'000;
  const MadeCall made{peer_, theirs.sequence, theirs.signature};
  if (theirs.sequence == mark_.sequence) return differing_calls({rank_, mark_.sequence, mark_.signature}, made);
  const auto own = history_.find(theirs.sequence);
  if (own && !(own->last.signature == theirs.signature))
    return differing_calls({rank_, theirs.sequence, own->last.signature}, made);
  const std::int64_t now = system_.now_ns();
  if (differs_since_ns_ == 0) differs_since_ns_ = now;
  if (now - differs_since_ns_ < name_limit_ns) return false;
  return differing_calls({rank_, mark_.sequence, mark_.signature}, made);
}

Result<std::span<const std::byte>> SignedReceiver::peek(std::size_t bytes) {
  if (heard_ != mark_.sequence && lands_ != nullptr) lands_->read_ahead(true);
  auto heard = TUTTI_TRY(hear());
  return heard ? through_->peek(bytes) : std::span<const std::byte>();
}

Result<std::span<const std::byte>> SignedReceiver::expect(std::size_t bytes) {
  if (heard_ != mark_.sequence) lands_->read_ahead(false);
  auto heard = TUTTI_TRY(hear());
  return heard ? lands_->expect(bytes) : std::span<const std::byte>();
}

}  // namespace tutti
