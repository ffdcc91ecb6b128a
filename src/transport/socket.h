// Fifos through TCP connections. Messages travel without headers, as both ends know their sizes and order; a word ends
// each of them.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/system.h"
#include "transport/fifo.h"
#include "transport/read_ahead.h"
#include "transport/socket_stripes.h"

namespace tutti {

/// Recommended maximum size of a message where ranks have sockets only.
inline constexpr std::size_t socket_slot_bytes = 1 << 20;

/// The connections between this rank and a peer on one channel, shared by this rank's sender and receiver. Both ends
/// must hold them in the same order.
class SocketLink {
 public:
  /// Between which ranks, and which of their connections.
  struct Ends {
    int rank = 0;  ///< this one
    int peer = 0;
    int channel = 0;
    std::string peer_name = {};  ///< for error messages: "rank 3/8 (process 48211 on node-b)"
  };
  /// All sockets are connected; there is at least one. `piece_bytes` must be equal at both ends.
  SocketLink(System& system, std::vector<Socket> sockets, Ends ends,
             std::size_t piece_bytes = Stripes::piece_bytes_default);

  std::size_t size() const { return sockets_.size(); }
  Stripes stripes(std::size_t bytes) const {
    return {.bytes = bytes, .sockets = sockets_.size(), .piece_bytes = piece_bytes_};
  }
  const Socket& socket(std::size_t nth) const { return sockets_[nth]; }
  /// For closing the link: neither sender nor receiver may be used afterwards.
  std::vector<Socket> take_sockets() { return std::move(sockets_); }

  /// Number of bytes sent. Errors: remote (closed, reset).
  Result<std::size_t> send(std::size_t socket, std::span<const std::span<const std::byte>> pieces);
  /// Number of bytes received, into two places, one after the other; the second one may be empty.
  Result<std::size_t> receive(std::size_t socket, std::span<std::byte> first, std::span<std::byte> second = {});

  std::uint64_t received_bytes() const { return received_bytes_; }

  Trailers sent_trailers() const { return {ends_.rank, ends_.peer, ends_.channel}; }
  Trailers received_trailers() const { return {ends_.peer, ends_.rank, ends_.channel}; }
  /// Message `number` does not end with its trailer.
  Error shifted(std::uint64_t number, std::size_t socket) const;

 private:
  Result<std::size_t> outcome(Result<Moved> moved) const;

  System& system_;
  std::vector<Socket> sockets_;
  Ends ends_;
  std::size_t piece_bytes_;
  std::uint64_t received_bytes_ = 0;
};

/// Memory of one message, on pages of its own; a page exists once it is touched.
class MessageMemory {
 public:
  explicit MessageMemory(std::size_t bytes) : data_(static_cast<std::byte*>(::operator new(bytes, page))) {}
  std::byte* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t page{4096};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, page); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// Slots are private memory of the sender: committed messages wait there until the kernel has taken them.
class SocketSender final : public Sender, public Offering {
 public:
  SocketSender(std::shared_ptr<SocketLink> link, int slots, std::size_t slot_bytes);

  Result<std::span<std::byte>> acquire() override;
  Result<void> commit(std::size_t bytes) override;
  Result<bool> flush() override;
  /// On sockets: all has left this process. The peer does not report what it has read.
  Result<Settled> settled() override { return settled_when(flush()); }
  std::size_t slot_bytes() const override { return slot_bytes_; }
  Offering* offering() override { return this; }
  bool offer(std::size_t at, std::span<const std::byte> memory) override;
  bool keep(std::span<const std::byte> memory) override;
  void poll_set(std::vector<PollItem>& items) const override;

 private:
  struct Offer {
    std::size_t at = 0;
    std::span<const std::byte> memory;
  };
  struct Message {
    std::size_t bytes = 0;  // length as sent
    std::byte* slot = nullptr;
    std::vector<Offer> offers;            // parts that lie in the caller's memory, in order
    std::vector<std::uint64_t> trailers;  // by socket

    /// The contiguous bytes from `at` on, at most `most`.
    std::span<const std::byte> part(std::size_t at, std::size_t most) const;
  };
  /// How far a socket has got in sending.
  struct Cursor {
    std::uint64_t message = 0;
    std::size_t done = 0;  // bytes of what the socket carries for the message
  };

  Message& message(std::uint64_t number) { return messages_[number % messages_.size()]; }
  const Message& message(std::uint64_t number) const { return messages_[number % messages_.size()]; }
  Stripes stripes(std::uint64_t number) const { return link_->stripes(message(number).bytes); }
  /// The pieces of one system call, and the position after them.
  struct Collected {
    std::size_t pieces = 0;
    std::size_t bytes = 0;
    Cursor end;
  };
  Collected collect(std::size_t socket, Cursor from, std::span<std::span<const std::byte>> pieces) const;
  Cursor after(std::size_t socket, Cursor from, std::size_t moved) const;
  bool has_left(std::uint64_t number, std::size_t end) const;
  void free_slots();

  std::shared_ptr<SocketLink> link_;
  Trailers trailers_;
  std::size_t slot_bytes_;
  std::vector<MessageMemory> memory_;  // as many slots as were ever in use at once
  std::vector<std::byte*> free_;       // the slot freed last is used next: it is still in the cache
  std::vector<Message> messages_;      // a ring, by message number
  std::vector<Cursor> cursors_;        // by socket
  bool filling_ = false;               // the message after the committed ones is acquired
  std::uint64_t committed_ = 0;
  std::uint64_t sent_ = 0;  // all messages up to this one have left
  std::size_t waiting_bytes_ = 0;
};

/// Reads one message at a time, up to its end: later messages wait in the kernel. Small messages are read ahead.
class SocketReceiver final : public Receiver, public Landing {
 public:
  SocketReceiver(std::shared_ptr<SocketLink> link, std::size_t slot_bytes);

  Result<std::span<const std::byte>> peek(std::size_t bytes) override;
  Result<void> release() override;
  Result<bool> drained() override;
  Landing* landing() override { return this; }
  Result<std::span<const std::byte>> expect(std::size_t bytes) override;
  void read_ahead(bool on) override { ahead_.turn(on); }
  Result<std::size_t> arrived(std::size_t at, std::size_t bytes) override;
  Result<std::size_t> land(std::size_t at, std::span<std::byte> into) override;
  Coming coming() const override { return {.bytes = link_->received_bytes()}; }
  void poll_set(std::vector<PollItem>& items) const override;

 private:
  Result<bool> open(std::size_t bytes);
  void begin(std::size_t bytes);
  Result<bool> take_ahead(std::size_t bytes);
  Result<void> check_trailer(std::size_t socket) const;
  std::size_t next(std::size_t socket) const;
  Result<std::size_t> read(std::size_t until);
  Result<void> read(std::size_t socket, std::size_t until);
  std::span<std::byte> place(std::size_t at, std::size_t bytes) const;
  void begin_landing(std::size_t at, std::span<std::byte> into);
  Result<std::size_t> receive(std::size_t socket, std::span<std::byte> into, std::span<std::byte> trailer, bool& dry);

  std::shared_ptr<SocketLink> link_;
  Trailers trailers_;
  std::size_t slot_bytes_;
  MessageMemory memory_;
  bool open_ = false;
  // the open message, or else the last one, has been read from the sockets completely
  bool complete_ = true;
  std::uint64_t begun_ = 0;             // messages
  std::size_t bytes_ = 0;               // of the open message
  Stripes stripes_;                     // of the open message, or else of the last one
  std::vector<std::size_t> done_;       // bytes of what each socket carries
  std::vector<std::uint64_t> endings_;  // what came in the place of each socket's trailer
  std::size_t until_ = 0;               // the message has been asked for up to here
  std::size_t landing_at_ = 0;          // start of the part that lands in the caller's memory
  std::span<std::byte> landing_;
  ReadAhead ahead_;  // of the first socket
};

}  // namespace tutti
