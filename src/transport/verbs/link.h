// The connection of two ranks on one channel by RDMA: slots, credits, and the queue pairs that carry both directions.
//
// A message is written into a slot of the receiver's ring. The ring has twice as many slots as a plan relies on, so
// that released slots may be reported late: with the next message of the other direction, or by themselves once half of
// the ring is free. The receives that writes use up are posted before the slot is reported free.
//
// A receiver may invite a message into memory of its caller instead. If the invitation arrives before the message
// leaves, the message goes there, by one queue pair: windows belong to queue pairs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/fifo.h"
#include "transport/verbs/cm_connection.h"
#include "transport/verbs/immediate.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/memory_window.h"
#include "transport/verbs/queue_pair.h"

namespace tutti::verbs {

inline constexpr std::size_t queue_pairs_max = 8;
/// Messages of up to so many bytes that leave together are one write.
inline constexpr std::size_t small_bytes = 64;
/// Length of what precedes them: their number, and the length of each, as 32-bit words; a multiple of 8.
constexpr std::size_t packed_header(std::size_t messages) {
  return (messages + 2) / 2 * 8;
}
/// Receives for writes that carry credits alone: each reports half of the ring, so no more than two are under way.
inline constexpr std::uint32_t credit_receives = 4;
/// Their requests leave the queue when later completions are seen, so there is space for more.
inline constexpr std::uint32_t credit_sends = 32;
/// Requests for an invitation: to open a window, to tell of it, and to close it.
inline constexpr std::uint32_t invitation_sends = 3;
/// By slot of the ring. Between two messages of this end, the peer can tell of invitations for twice as many messages
/// as the ring has slots: for those that leave meanwhile, and for those after them.
inline constexpr std::uint32_t invitation_receives = 2;

/// Equal at both ends.
struct LinkShape {
  int slots = 4;  ///< that plans rely on
  std::size_t slot_bytes = 128 * 1024;
  int queue_pairs = 1;

  std::uint32_t ring_slots() const { return 2 * static_cast<std::uint32_t>(slots); }
  /// A long message travels in pieces, over all queue pairs, so that its beginning can be used before its end is here.
  std::size_t piece_bytes() const;
  std::uint32_t pieces(std::size_t bytes) const;
  /// Of one queue pair: work requests under way, and receives posted at a time.
  std::uint32_t sends() const;
  std::uint32_t receives() const;
  /// Where requests have headers of their own, those that are flushed by a failure take twice the space.
  std::size_t completions(bool iwarp) const { return std::size_t{sends()} * (iwarp ? 2 : 1) + receives(); }
  bool operator==(const LinkShape&) const = default;
};

/// What one end tells the other.
struct LinkAddress {
  LinkShape shape;
  PortAddress port;
  std::array<QueueAddress, queue_pairs_max> queues{};
  std::uint64_t ring = 0;  ///< address of the ring, for the other end's writes
  std::uint32_t rkey = 0;
};

/// Driven by one thread at a time, after `connect`.
class Link final : public CompletionSink {
 public:
  /// `peer_name` is for error messages. With iWARP there is one queue pair. Errors: system.
  static Result<std::shared_ptr<Link>> make(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape,
                                            const QueueShape& queues, int peer, std::string peer_name);
  ~Link() override;

  LinkAddress address() const;
  /// Afterwards the peer may send. Errors: system, remote (an address that cannot be right).
  Result<void> connect(const LinkAddress& peer);

  /// With iWARP, `connect` leaves the queue pair to rdma_cm: one end listens for the other, which calls it; `joined` is
  /// true once they are connected. The end that calls must send first, as it does when it probes. Errors: system,
  /// remote.
  bool iwarp() const { return endpoint_->port.iwarp; }
  Result<CmAddress> listen(const CmToken& token);
  Result<void> call(const CmAddress& peer, const CmToken& token);
  Result<bool> joined() { return cm_->advance(); }
  PollItem interest_to_join() const { return cm_->interest(); }

  /// Sends an empty write that asks for a completion; `probed` is true once the peer's device has confirmed it. Before
  /// anything else is sent.
  Result<void> probe();
  Result<bool> probed();

  // As Sender and Receiver.
  Result<std::span<std::byte>> acquire();
  Result<void> commit(std::size_t bytes);
  /// True once everything is in the device's hands, and the device has read what was offered.
  Result<bool> flush();
  bool offer(std::size_t at, std::span<const std::byte> memory);
  bool keep(std::span<const std::byte> memory);
  void stop();
  Result<std::span<const std::byte>> peek(std::size_t bytes);
  Result<std::span<const std::byte>> expect(std::size_t bytes);
  Result<std::size_t> arrived(std::size_t at, std::size_t bytes);
  Result<std::size_t> land(std::size_t at, std::span<std::byte> into);
  Invited invite(std::size_t ahead, std::span<std::byte> memory);
  bool closed();
  Result<void> release();
  std::size_t slot_bytes() const { return shape_.slot_bytes; }
  void poll_set_to_probe(std::vector<PollItem>& items) const { endpoint_->poll_set(items); }
  void poll_set_to_send(std::vector<PollItem>& items) const;
  void poll_set_to_receive(std::vector<PollItem>& items) const;

  void complete(const Completion& completion) override;
  void fail(const Error& error) override;

  /// The port of this end, for messages.
  std::string over() const { return endpoint_->port.text(); }

  /// For tests: writes that carried credits alone, and messages that went where the peer had invited them to.
  std::uint64_t credit_messages() const { return credit_messages_; }
  std::uint64_t direct_messages() const { return direct_messages_; }

 private:
  /// What has arrived in one slot of the ring.
  struct Arriving {
    std::uint32_t pieces = 0;  // bit by bit
    std::uint32_t last = 0;    // number of the last piece, once any is here
    std::size_t bytes = 0;
    const std::byte* at = nullptr;  // null: at the beginning of its slot
    bool direct = false;            // in the memory to which it was invited
    bool complete() const { return pieces != 0 && pieces == (2u << last) - 1; }
  };
  /// A part of a message that lies in memory that the caller owns.
  struct Offer {
    std::size_t at = 0;
    std::span<const std::byte> memory;
    std::uint32_t key = 0;
  };
  /// Where the receiver of a message wants it to be written: an entry of the area behind the sender's ring.
  struct Destination {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    std::uint32_t bytes = 0;  // may be less than the message has: the rest does not matter
  };
  /// By this end, for a message to come.
  struct Invitation {
    bool given = false;  // and the message is not yet over
    std::uint64_t message = 0;
    std::span<std::byte> memory;
    std::unique_ptr<MemoryWindow> window;
    Destination destination;
  };
  /// By the peer, for a message to be sent.
  struct PeerInvitation {
    bool valid = false;
    std::uint64_t message = 0;
    Destination destination;
  };
  /// How far each queue pair must be for a message to have been read by the device.
  using Marks = std::array<std::uint32_t, queue_pairs_max>;
  struct Sending {
    std::size_t bytes = 0;
    Marks marks{};
    std::vector<Offer> offers;                                  // in order
    std::array<std::uint32_t, QueuePair::pieces_max> header{};  // of a write whose last message this is
  };

  Link(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape, int peer, std::string peer_name);
  Result<void> create(const QueueShape& queues);
  std::uint32_t space_needed() const { return shape_.pieces(shape_.slot_bytes) + credit_receives; }
  bool may_send() const;
  bool was_read(const Sending& message) const;
  Sending& sending(std::uint64_t message) { return sending_[message % sending_.size()]; }
  std::uint32_t gather(std::uint64_t message, std::size_t from, std::size_t to, std::span<Sge> pieces) const;
  bool offers_were_read();
  QueuePair& queue_for(std::uint64_t message, std::uint32_t piece) {
    return *queues_[(message + piece) % queues_.size()];
  }
  Arriving& arriving(std::uint64_t message) { return arriving_[message % arriving_.size()]; }
  std::byte* ring_slot(std::uint64_t message) const;
  const std::byte* data_of(std::uint64_t message) {
    const std::byte* const at = arriving(message).at;
    return at != nullptr ? at : ring_slot(message);
  }
  bool packs(std::size_t bytes) const;
  void send(std::uint64_t message);
  void send_packed();
  std::uint32_t take_credits();
  void receive(const Completion& completion);
  bool place(const Immediate& immediate, std::size_t bytes);
  bool unpack(std::uint64_t last, std::size_t bytes);
  std::byte* invitation_area(std::uint64_t message) const;
  Result<void> send_invitation(QueuePair& queue, const Invitation& invitation);
  Invitation& invitation_at(std::uint64_t message) { return invitations_[message % invitations_.size()]; }
  const Invitation* invitation_of(std::uint64_t message) const;
  bool is_closed(const Invitation& invitation) const;
  void close_windows();
  bool take_invitation(std::uint32_t message);
  const Destination* destination_of(std::uint64_t message) const;
  bool has_space_for_next() const { return taken_ - granted_ < shape_.ring_slots(); }
  void grant();
  Result<void> report_credits();
  void look();
  Result<void> post_receives();
  Error broken(std::string why) const;
  Error refused_here(const Error& error) const;

  std::shared_ptr<Endpoint> endpoint_;
  LinkShape shape_;
  int peer_;
  std::string peer_name_;
  std::optional<std::uint32_t> sink_;
  std::optional<RegisteredMemory> ring_;   // the peer writes here
  std::optional<RegisteredMemory> slots_;  // messages to send
  std::unique_ptr<CmConnection> cm_;       // with iWARP; ends after its queue pair
  std::vector<std::unique_ptr<QueuePair>> queues_;
  /// By message. As many messages as the ring has slots can be invited while the windows of as many are being closed.
  std::vector<Invitation> invitations_;  // ends before the queue pairs
  LinkAddress to_;
  std::optional<Error> error_;

  std::uint64_t committed_ = 0;      // messages
  std::uint64_t posted_ = 0;         // of them in the device's hands
  std::uint64_t freed_by_peer_ = 0;  // of them
  bool filling_ = false;
  bool wants_slot_ = false;
  std::size_t waiting_bytes_ = 0;
  std::uint32_t small_ = 0;       // the last so many committed messages are small, and not yet added to a queue
  std::size_t small_total_ = 0;   // their bytes
  std::vector<Sending> sending_;  // by send slot
  std::uint64_t read_ = 0;        // all messages up to this one have no offers that the device has yet to read

  std::vector<PeerInvitation> peer_invitations_;  // by slot of the peer's ring
  bool invited_ = false;                          // receives were used up by invitations
  std::uint64_t direct_messages_ = 0;

  std::vector<Arriving> arriving_;  // by slot of the ring
  std::uint64_t taken_ = 0;         // messages released by the receiver
  std::uint64_t granted_ = 0;       // of them complete, so that their slots are free
  std::uint64_t closed_ = 0;        // of them without an invitation that is still to be taken back
  bool invites_ = false;
  bool wants_closed_ = false;
  std::uint32_t owed_ = 0;  // free slots that the peer has not been told of
  bool wants_message_ = false;
  std::size_t landed_at_ = 0;
  std::size_t landed_ = 0;
  const std::byte* landing_ = nullptr;
  std::uint64_t credit_messages_ = 0;
};

class LinkSender final : public Sender, public Offering {
 public:
  explicit LinkSender(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  Result<std::span<std::byte>> acquire() override { return link_->acquire(); }
  Result<void> commit(std::size_t bytes) override { return link_->commit(bytes); }
  Result<bool> flush() override { return link_->flush(); }
  /// All is in the device's hands, which needs no help of this rank.
  Result<Settled> settled() override { return settled_when(link_->flush()); }
  std::size_t slot_bytes() const override { return link_->slot_bytes(); }
  Offering* offering() override { return this; }
  bool offer(std::size_t at, std::span<const std::byte> memory) override { return link_->offer(at, memory); }
  bool keep(std::span<const std::byte> memory) override { return link_->keep(memory); }
  void poll_set(std::vector<PollItem>& items) const override { link_->poll_set_to_send(items); }

 private:
  std::shared_ptr<Link> link_;
};

class LinkReceiver final : public Receiver, public Landing {
 public:
  explicit LinkReceiver(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  Result<std::span<const std::byte>> peek(std::size_t bytes) override { return link_->peek(bytes); }
  Result<void> release() override { return link_->release(); }
  Landing* landing() override { return this; }
  Result<std::span<const std::byte>> expect(std::size_t bytes) override { return link_->expect(bytes); }
  Result<std::size_t> arrived(std::size_t at, std::size_t bytes) override { return link_->arrived(at, bytes); }
  Result<std::size_t> land(std::size_t at, std::span<std::byte> into) override { return link_->land(at, into); }
  Invited invite(std::size_t ahead, std::span<std::byte> memory) override { return link_->invite(ahead, memory); }
  bool closed() override { return link_->closed(); }
  Coming coming() const override { return {.at_once = true}; }
  void poll_set(std::vector<PollItem>& items) const override { link_->poll_set_to_receive(items); }

 private:
  std::shared_ptr<Link> link_;
};

}  // namespace tutti::verbs
