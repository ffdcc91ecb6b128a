// The connection of two ranks on one channel by RDMA: messages out, messages in, and the queue pairs that carry both.
//
// A message is written into a slot of the receiver's ring. The ring has twice as many slots as a plan relies on, so
// that released slots may be reported late: with the next message of the other direction, or by themselves once half of
// the ring is free. The receives that writes use up are posted before the slot is reported free.
//
// A receiver may invite a message into memory of its caller instead. If the invitation arrives before the message
// leaves, the message goes there, by one queue pair: windows belong to queue pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/fifo.h"
#include "transport/verbs/arrivals.h"
#include "transport/verbs/cm_connection.h"
#include "transport/verbs/invitations.h"
#include "transport/verbs/link_queues.h"
#include "transport/verbs/send_slots.h"

namespace tutti::verbs {

/// Messages on their way out.
class Outgoing final : public Sender, public Offering {
 public:
  /// `slots`: of messages to send. `ring`: of this end. All must outlive this.
  Outgoing(LinkQueues& queues, const LinkShape& shape, const RegisteredMemory& slots, const std::byte* ring);

  Result<std::span<std::byte>> acquire() override;
  Result<void> commit(std::size_t bytes) override;
  /// True once everything is in the device's hands, and the device has read what was offered.
  Result<bool> flush() override;
  /// All is in the device's hands, which needs no help of this rank.
  Result<Settled> settled() override { return settled_when(flush()); }
  std::size_t slot_bytes() const override { return shape_.slot_bytes; }
  Offering* offering() override { return this; }
  bool offer(std::size_t at, std::span<const std::byte> memory) override;
  bool keep(std::span<const std::byte> memory) override;
  void poll_set(std::vector<PollItem>& items) const override;

  /// What the peer says. `credits`: messages that it has released. False: it cannot be.
  bool may_be_freed(std::uint32_t credits) const { return credits <= committed_ - freed_by_peer_; }
  void free(std::uint32_t credits) { freed_by_peer_ += credits; }
  bool take_invitation(std::uint32_t message);

  /// For tests: messages that went where the peer had invited them to.
  std::uint64_t direct_messages() const { return direct_messages_; }

 private:
  bool may_send() const;
  bool was_read(std::uint64_t message) const { return queues_.are_past(slots_[message].marks); }
  bool offers_were_read();
  bool packs(std::size_t bytes) const;
  void send(std::uint64_t message);
  void send_packed();

  LinkQueues& queues_;
  LinkShape shape_;
  SendSlots slots_;
  PeerInvitations invitations_;
  bool invited_ = false;             // receives were used up by invitations
  std::uint64_t committed_ = 0;      // messages
  std::uint64_t posted_ = 0;         // of them in the device's hands
  std::uint64_t freed_by_peer_ = 0;  // of them
  std::uint64_t read_ = 0;           // all messages up to this one have no offers that the device has yet to read
  bool filling_ = false;
  bool wants_slot_ = false;
  std::size_t waiting_bytes_ = 0;
  std::uint32_t small_ = 0;      // the last so many committed messages are small, and not yet added to a queue
  std::size_t small_total_ = 0;  // their bytes
  std::uint64_t direct_messages_ = 0;
};

/// Messages that arrive. Whoever looks for them also sends what waits in `out`: the peer may need it first.
class Incoming final : public Receiver, public Landing {
 public:
  /// All must outlive this.
  Incoming(LinkQueues& queues, Outgoing& out, const LinkShape& shape, const std::byte* ring);

  Result<std::span<const std::byte>> peek(std::size_t bytes) override;
  Result<void> release() override;
  Landing* landing() override { return this; }
  Result<std::span<const std::byte>> expect(std::size_t bytes) override;
  Result<std::size_t> arrived(std::size_t at, std::size_t bytes) override;
  Result<std::size_t> land(std::size_t at, std::span<std::byte> into) override;
  Invited invite(std::size_t ahead, std::span<std::byte> memory) override;
  bool closed() override;
  Coming coming() const override { return {.at_once = true}; }
  void poll_set(std::vector<PollItem>& items) const override;

  /// What the peer says of a write of so many bytes. False: it cannot be.
  bool place(const Immediate& immediate, std::size_t bytes);
  /// Frees the slots that can be.
  void grant();

  /// For tests: writes that carried credits alone.
  std::uint64_t credit_messages() const { return credit_messages_; }

 private:
  Result<void> report_credits();
  void look();

  LinkQueues& queues_;
  Outgoing& out_;
  LinkShape shape_;
  Arrivals arrivals_;
  Invitations invitations_;
  bool wants_closed_ = false;
  bool wants_message_ = false;
  std::size_t landed_at_ = 0;
  std::size_t landed_ = 0;
  const std::byte* landing_ = nullptr;
  std::uint64_t credit_messages_ = 0;
};

/// Driven by one thread at a time, after `connect`.
class Link final : public CompletionSink {
 public:
  /// `peer_name` is for error messages. With iWARP there is one queue pair. Errors: system.
  static Result<std::shared_ptr<Link>> make(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape,
                                            const QueueShape& queues, int peer, std::string peer_name);
  ~Link() override;

  LinkAddress address() const { return queues_.address(ring_); }
  /// Afterwards the peer may send. Errors: system, remote (an address that cannot be right).
  Result<void> connect(const LinkAddress& peer) { return queues_.connect(peer); }

  /// With iWARP, `connect` leaves the queue pair to rdma_cm: one end listens for the other, which calls it; `joined` is
  /// true once they are connected. The end that calls must send first, as it does when it probes. Errors: system,
  /// remote.
  bool iwarp() const { return queues_.endpoint().port.iwarp; }
  Result<CmAddress> listen(const CmToken& token);
  Result<void> call(const CmAddress& peer, const CmToken& token);
  Result<bool> joined() { return cm_->advance(); }
  PollItem interest_to_join() const { return cm_->interest(); }

  /// Sends an empty write that asks for a completion; `probed` is true once the peer's device has confirmed it. Before
  /// anything else is sent.
  Result<void> probe();
  Result<bool> probed();
  void poll_set_to_probe(std::vector<PollItem>& items) const { queues_.endpoint().poll_set(items); }

  Outgoing& out() { return out_; }
  Incoming& in() { return in_; }
  void stop();

  void complete(const Completion& completion) override;
  void fail(const Error& error) override { queues_.fail(error); }

  /// The port of this end, for messages.
  std::string over() const { return queues_.endpoint().port.text(); }

 private:
  Link(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape, Owner peer, RegisteredMemory ring,
       RegisteredMemory slots);
  void receive(const Completion& completion);

  std::optional<std::uint32_t> sink_;
  RegisteredMemory ring_;             // the peer writes here
  RegisteredMemory slots_;            // messages to send
  std::unique_ptr<CmConnection> cm_;  // with iWARP; ends after its queue pair
  LinkQueues queues_;
  Outgoing out_;
  Incoming in_;
};

}  // namespace tutti::verbs
