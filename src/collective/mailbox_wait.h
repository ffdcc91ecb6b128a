// Wait for one message of a mailbox to end, or to come.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "call/operation.h"
#include "collective/mailbox.h"

namespace tutti {

/// Waits in a mailbox. All must outlive the operation.
class InMailbox : public Operation {
 public:
  Communicator* communicator() override { return &communicator_; }
  std::int64_t poll_set(std::vector<PollItem>& items) const override {
    mailbox_.poll_set(items);
    return communicator_.members().spans_hosts() ? communicator_.links().poll_deadline_ns(/*awaited=*/true) : 0;
  }

 protected:
  InMailbox(Communicator& communicator, Mailbox& mailbox) : communicator_(communicator), mailbox_(mailbox) {}

  Communicator& communicator_;
  Mailbox& mailbox_;
};

class MailboxWait final : public InMailbox {
 public:
  MailboxWait(Communicator& communicator, Mailbox& mailbox, const Message& message)
      : InMailbox(communicator, mailbox), message_(message) {}

  Result<Progress> advance() override {
    const bool moved = mailbox_.progress();
    if (message_.state.load(std::memory_order_acquire) != Message::State::pending) return Progress::done;
    return moved ? Progress::moved : Progress::blocked;
  }
  Result<void> poll_peers() override {
    auto gone = mailbox_.look_at_peers();
    if (!gone) return {};
    communicator_.fail(*std::move(gone));
    return communicator_.failure().error();
  }
  std::string where() const override {
    const Rank rank = waits_for();
    if (message_.send) return fmt::format("a send to rank {}", rank);
    return rank < 0 ? "a receive from any rank" : fmt::format("a receive from rank {}", rank);
  }
  Rank waits_for() const override { return mailbox_.peer_of(message_); }

 private:
  const Message& message_;
};

class MailboxProbe final : public InMailbox {
 public:
  MailboxProbe(Communicator& communicator, Mailbox& mailbox, Rank source, int tag)
      : InMailbox(communicator, mailbox), source_(source), tag_(tag) {}

  Result<Progress> advance() override {
    if (communicator_.failed()) return Progress::done;
    found_ = mailbox_.probe(source_, tag_);
    return found_ ? Progress::done : Progress::blocked;
  }
  Result<void> poll_peers() override {
    (void)mailbox_.probe_to_the_end(source_, tag_);
    if (!communicator_.failed()) return {};
    return communicator_.failure().error();
  }
  std::string where() const override { return "a probe"; }
  Rank waits_for() const override { return source_ == MessageEnvelope::any ? any_rank : source_; }

  const std::optional<MessageEnvelope>& found() const { return found_; }

 private:
  Rank source_;
  int tag_;
  std::optional<MessageEnvelope> found_;
};

}  // namespace tutti
