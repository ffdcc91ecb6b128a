// Messages with tags between the ranks of a communicator, which hold up no other call: they have connections of their
// own, and are carried on by whoever tests or waits.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "call/background.h"
#include "collective/matching.h"
#include "collective/outbox.h"
#include "comm/communicator.h"

namespace tutti {

/// How the data of a large message comes to the receive that has matched it: out of the sender's memory, piece by
/// piece, or on demand through slots.
struct Fetch {
  enum class Read { piece, last_piece, refused };

  Rank from = 0;
  PacketHeader header;
  std::shared_ptr<Message> message;
  std::size_t moved = 0;
  SenderMemory memory = {};

  /// The sender is to be asked for the data, or has been.
  bool through_slots() const { return header.carried.carry == Carry::slots; }
  /// Reads a piece of the sender's memory. Refused: this rank may not, so the data comes through slots. Errors: the
  /// sender's failure; those of SenderMemory.
  Result<Read> read(Communicator& communicator, PeerWindows& windows, MessageCounts& counts);
};

/// Messages between two ranks are matched in the order in which they were sent. Small ones are sent at once; where no
/// receive waits for one that arrives, it is kept aside. Of large ones the header alone is sent. Once a receive matches
/// it, the receiver reads the sender's memory, or asks for the data. So the receiver always makes room on the
/// connection, and nothing waits behind a message that nobody receives.
class Mailbox final : public Background {
 public:
  explicit Mailbox(Communicator& communicator);

  void start(const std::shared_ptr<Message>& message);
  bool active() const override { return counts_.pending(); }
  bool progress() override;
  void close() override;
  /// False: it is too late.
  bool cancel(Message& message);
  /// The first message that a receive of this source and tag would get. Receives nothing.
  std::optional<MessageEnvelope> probe(Rank source, int tag);
  /// As probe; where there is none and nobody is left who could send one, the communicator fails.
  std::optional<MessageEnvelope> probe_to_the_end(Rank source, int tag);

  void poll_set(std::vector<PollItem>& items);
  /// For whom the message waits; perhaps any_rank.
  Rank peer_of(const Message& message);
  /// Looks for ranks that have left, ended or failed, once more at what has come from them, and then whether a message
  /// still needs them: the error of that. A receive from any rank needs one that is left.
  std::optional<Error> look_at_peers();

  /// For a rank that leaves: reads what has come. Errors: invalid_usage (no receive has taken a message).
  Result<void> check_received();

 private:
  struct Peer {
    Sender* sender = nullptr;  ///< null: this rank itself
    Receiver* receiver = nullptr;
    bool remote = false;
    Outbox outbox = {};
    ArrivingPacket packet = {};
    Unexpected* small = nullptr;            ///< the message that the packet brings
    std::shared_ptr<Message> data_of = {};  ///< the receive whose data the packet brings
    Stall stall = {};                       ///< of what comes from it and goes to it
    std::optional<Error> gone = {};         ///< the rank has left or ended, and all that it had sent has been read

    void reset() { *this = {.sender = sender, .receiver = receiver, .remote = remote}; }
  };

  void take(Unexpected& unexpected, const std::shared_ptr<Message>& message);
  void fail_all(const Error& error);
  bool wants(Rank rank) const;
  bool needs(Rank rank) const;
  std::string waits_where() const;
  std::optional<Error> gone(Rank rank);
  std::optional<Error> look();

  // The connections (mailbox_wire.cpp)
  Result<void> advance();
  Result<void> exchange(Rank rank);
  Result<void> lose(Rank rank, Error error);
  Result<void> pull(Rank from);
  Result<void> open_packet(Rank from);
  Result<void> close_packet(Rank from);

  Communicator& communicator_;
  std::mutex mutex_;
  const std::atomic<bool> waits_ = false;  // a segment is waited for until the limit of the start
  PeerWindows windows_;
  std::vector<Peer> peers_;
  Matching matching_;
  std::list<Fetch> fetches_;
  MessageCounts counts_;
  std::uint64_t next_id_ = 1;
  unsigned fruitless_ = 0;  // calls of progress and probe that moved nothing
  static constexpr Rank nobody = -2;
  Rank probing_ = nobody;  // a source looked for at the moment; MessageEnvelope::any: all
};

/// The communicator's, made when it is first asked for. For the thread that makes calls.
Mailbox& mailbox_of(Communicator& communicator);

/// For a rank that leaves: have all messages found their receive? A short message is sent once it lies in a slot,
/// whether or not its receiver ever asks for it. So a message that is never received shows when one of the two leaves.
/// A message with a tag may have been read all the same, and be kept. For the thread that has the communicator, with
/// nothing under way but messages with tags. Errors: invalid_usage (names the ranks, and where it is known the
/// message); remote, as the connections give them.
Result<void> check_all_received(Communicator& communicator);

}  // namespace tutti
