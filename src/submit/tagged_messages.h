// Messages with tags, for whoever starts them: start, test, wait, cancel, probe.
#pragma once

#include <memory>
#include <optional>

#include "call/request.h"
#include "collective/message.h"
#include "comm/communicator.h"

namespace tutti {

/// A send or a receive of a rank in a communicator that has not failed.
class TaggedMessage {
 public:
  /// `from` and `tag` of a receive: perhaps MessageEnvelope::any.
  TaggedMessage(std::shared_ptr<Communicator> communicator, const PeerRequest& request, Rank from, int tag);

  void start();
  /// Whether it has ended. Does what can be done now.
  bool test();
  /// Waits until it has ended. Errors: those of `drive`; it may have ended all the same.
  Result<void> wait();
  /// False: it is too late.
  bool cancel();

  bool ended() const { return message_->state.load(std::memory_order_acquire) != Message::State::pending; }
  bool cancelled() const { return message_->state.load() == Message::State::cancelled; }
  /// Of one that has ended: what has come.
  const MessageEnvelope& envelope() const { return message_->envelope; }
  /// Of one that has ended, to tell its user. Errors: the message's.
  Result<void> result();
  Communicator& communicator() const { return *communicator_; }

 private:
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<Message> message_ = std::make_shared<Message>();
};

/// The first message that a receive of this source and tag would get, if there is one. Receives nothing. Errors: the
/// failure of the communicator.
Result<std::optional<MessageEnvelope>> probe(Communicator& communicator, Rank source, int tag);
/// As probe, but waits for it.
Result<MessageEnvelope> await_message(Communicator& communicator, Rank source, int tag);

}  // namespace tutti
