// Messages with tags between the ranks of a communicator, which hold up no other call: they have connections of their
// own, and are carried on by whoever tests or waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/enumeration.h"
#include "call/background.h"
#include "collective/sender_memory.h"
#include "comm/communicator.h"
#include "comm/peer_failure.h"
#include "comm/peer_windows.h"

namespace tutti {

/// What a receiver knows of a message.
struct MessageEnvelope {
  static constexpr int any = -1;  ///< of a receive: every source; every tag
  Rank source = 0;
  int tag = 0;
  std::size_t bytes = 0;
  DataType type = DataType::uint8;
};

/// A send or a receive under way. Its fields are the mailbox's, under its lock, until `state` is something else than
/// pending.
struct Message {
  enum class State : std::uint8_t { pending, done, failed, cancelled };

  bool send = true;
  std::byte* data = nullptr;  ///< only read by a send
  MessageEnvelope envelope;   ///< of a receive what it takes, then what it got; `bytes` its space until then
  Rank to = 0;                ///< of a send
  std::atomic<State> state = State::pending;
  std::optional<Error> error = {};  ///< of this message alone
  bool begun = false;               ///< it can no longer be cancelled
};

/// Messages between two ranks are matched in the order in which they were sent. Small ones are sent at once; where no
/// receive waits for one that arrives, it is kept aside. Of large ones the header alone is sent. Once a receive matches
/// it, the receiver reads the sender's memory, or asks for the data. So the receiver always makes room on the
/// connection, and nothing waits behind a message that nobody receives.
class Mailbox final : public Background {
 public:
  explicit Mailbox(Communicator& communicator);

  void start(const std::shared_ptr<Message>& message);
  bool active() const override { return pending_.load(std::memory_order_acquire) > 0; }
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
  /// Why nothing can come any more from `source`; MessageEnvelope::any: from anybody.
  std::optional<Error> silence_of(Rank source);

  /// For a rank that leaves: reads what has come. Errors: invalid_usage (no receive has taken a message).
  Result<void> check_received();
  /// For a communicator that has no mailbox: whether something lies there for one.
  static bool has_mail(Communicator& communicator);

 private:
  enum class Kind : std::uint32_t { small = 1, offer, wanted, data, taken, first = small, last = taken };
  /// From a peer; sound once open_packet has looked at it.
  struct Header {
    Unchecked<Kind> kind;
    std::uint32_t type = 0;
    std::int32_t tag = 0;
    std::uint64_t bytes = 0;  ///< of the message
    std::uint64_t id = 0;     ///< of an offer, for what is said of it
    Carried carried;          ///< of an offer
  };
  struct Outgoing {
    Header header;
    const std::byte* payload = nullptr;
    std::size_t bytes = 0;  ///< of the payload
    std::shared_ptr<Message> message;
    std::size_t moved = 0;
    bool begun = false;
  };
  /// A message that has no receive yet.
  struct Unexpected {
    Rank from = 0;
    Header header;
    std::vector<std::byte> data;        ///< of a small one
    bool whole = false;                 ///< all of it is here
    std::shared_ptr<Message> taken_by;  ///< matched while it was still arriving

    std::size_t kept_bytes() const { return sizeof(Unexpected) + data.size(); }
  };
  /// A packet that is arriving.
  struct Incoming {
    bool begun = false;
    Header header;
    std::size_t moved = 0;
    std::byte* into = nullptr;
    Unexpected* small = nullptr;
    std::shared_ptr<Message> data_of;
  };
  /// A large message that a receive has matched.
  struct Fetch {
    Rank from = 0;
    Header header;
    std::shared_ptr<Message> message;
    std::size_t moved = 0;
    SenderMemory memory;
  };
  struct Peer {
    std::deque<Outgoing> outbox;
    std::vector<std::shared_ptr<Message>> unflushed;  ///< small ones that wait for a flush
    std::vector<std::pair<std::uint64_t, std::shared_ptr<Message>>> offered;
    Incoming incoming;
    Stall stall;                     ///< of what comes from it and goes to it
    std::optional<Error> gone = {};  ///< the rank has left or ended, and all that it had sent has been read
  };

  static bool matches(const Message& receive, Rank from, const Header& header);
  bool remote(Rank rank) const { return communicator_.members().peers[static_cast<std::size_t>(rank)].remote(); }
  Sender& sender(Rank peer);
  Receiver& receiver(Rank peer);

  // Matching (mailbox.cpp)
  void send(const std::shared_ptr<Message>& message);
  Header header_of(const Message& message);
  void receive(const std::shared_ptr<Message>& message);
  void arrived(Unexpected& unexpected);
  void take(Unexpected& unexpected, const std::shared_ptr<Message>& message);
  void forget(const Unexpected& unexpected);
  void end(Message& message, Message::State state);
  void fail_all(const Error& error);
  bool wants(Rank peer) const;
  bool needs(Rank peer) const;
  bool receives_from_anybody() const;
  std::string waits_where() const;
  std::optional<Error> gone(Rank peer);
  std::optional<Error> look();
  const Unexpected* kept_for(Rank source, int tag) const;

  // The connections (mailbox_wire.cpp)
  Result<void> advance();
  Result<void> exchange(Rank peer);
  Result<void> lose(Rank peer, Error error);
  Result<void> push(Rank peer);
  Result<void> pull(Rank peer);
  Result<Unexpected*> keep(Rank from, const Header& header);
  Result<void> open_packet(Rank from, std::span<const std::byte> bytes);
  Result<void> close_packet(Rank from);
  Result<void> answered(Rank from, const Header& header);
  Result<void> expect_data(Rank from, Incoming& incoming);
  Result<bool> fetch(Fetch& fetch);
  Result<bool> ask_instead(Fetch& fetch, Error why);
  /// `ends`: the receive that ends once the reply has left, for a sender may wait for it.
  void reply(Rank to, Kind kind, const Header& about, const std::shared_ptr<Message>& ends = nullptr);

  // The end (unreceived.cpp)
  void read_all();

  Communicator& communicator_;
  std::mutex mutex_;
  const std::atomic<bool> waits_ = false;  // a segment is waited for until the limit of the start
  PeerWindows windows_;
  std::vector<Peer> peers_;
  std::list<std::shared_ptr<Message>> posted_;  // receives without a message
  std::list<Unexpected> unexpected_;            // in order of arrival
  std::list<Fetch> fetches_;
  std::size_t kept_bytes_ = 0;  // of unexpected_
  std::uint64_t moves_ = 0;     // counts packets, slots and pieces
  std::uint64_t next_id_ = 1;
  unsigned fruitless_ = 0;  // calls of progress and probe that moved nothing
  Rank probing_ = -2;       // a source looked for at the moment; MessageEnvelope::any: all
  std::atomic<int> pending_ = 0;
};

/// The communicator's, made when it is first asked for. For the thread that makes calls.
Mailbox& mailbox_of(Communicator& communicator);

}  // namespace tutti
