// One queue pair of a reliable connection: its states, and work requests that are posted together. Where a device has
// no immediates, each request is a write and the send of its header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "transport/verbs/endpoint.h"
#include "transport/verbs/send_requests.h"

namespace tutti::verbs {

/// How a queue pair is set up.
struct QueueShape {
  std::uint32_t sends = 32;     ///< work requests under way
  std::uint32_t receives = 32;  ///< posted at a time
  std::uint32_t inline_bytes = 0;
  int traffic_class = 0;
  int timeout = 16;  ///< 4.096 µs × 2^timeout until a packet is sent again
  int retries = 6;   ///< 7 would mean for ever on some devices
};

/// The lower half of a work request's id: which queue pair, whether a receive, and the request's number; of a receive,
/// which buffer it has, if any.
struct WorkWord {
  static constexpr std::uint32_t number_mask = 0xff'ffff;
  std::uint32_t word = 0;
  bool is_receive() const { return (word >> 31) != 0; }
  std::size_t queue() const { return word >> 24 & 0x7f; }
  std::uint32_t number() const { return word & number_mask; }
};

/// What the other end must know of a queue pair.
struct QueueAddress {
  std::uint32_t number = 0;
  std::uint32_t psn = 0;  ///< first packet sequence number, random
};

/// What stands in for immediate data where a device has none (iWARP): a send behind each write, on the same queue pair,
/// since only sends are ordered behind writes. The headers that one queue pair sends and receives.
class WriteHeaders {
 public:
  /// What a send carries, in network byte order.
  struct Header {
    std::uint32_t immediate = 0;
    std::uint32_t bytes = 0;  ///< length of the write, which the completion of a send does not tell
  };

  /// For so many requests and receives at a time. `buffers`: a Header for each receive.
  WriteHeaders(RegisteredMemory buffers, std::uint32_t sends, std::uint32_t receives);

  /// The memory of the next request's header, to be sent inline; valid until `sends` more were put.
  Sge put(std::uint32_t immediate, std::uint32_t bytes);

  /// Gives the receive the next buffer, in turn, whose number its id then ends with: receives are used up in order, so
  /// it is free.
  void add_buffer(ReceiveWork& receive);

  /// The completion of the receive with this buffer, as if the write had carried an immediate. If no header came, it
  /// has none.
  Completion read(Completion completion, std::uint32_t index) const;

 private:
  std::vector<Header> sent_;
  std::size_t next_sent_ = 0;
  RegisteredMemory buffers_;
  std::vector<Sge> places_;  // of each
  std::uint32_t next_buffer_ = 0;
};

class QueuePair {
 public:
  /// Pieces of memory that one write may gather, where the device can.
  static constexpr std::uint32_t pieces_max = 8;
  static std::uint32_t pieces_of(const Port& port);

  /// In the state INIT, with all receives posted. `index`: among the sink's queue pairs. Errors: system.
  static Result<std::unique_ptr<QueuePair>> create(const std::shared_ptr<Endpoint>& endpoint, const QueueShape& shape,
                                                   std::uint32_t sink, std::uint32_t index);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  QueueAddress address() const { return {.number = qp_->qp_num, .psn = psn_}; }
  std::uint32_t inline_bytes() const { return inline_bytes_; }

  /// To the state in which it sends. Errors: system.
  Result<void> connect(const QueueAddress& queue, const PortAddress& port);
  /// Nothing is sent or received from here on.
  void stop();
  /// Nothing is posted before the first receive is used up: with iWARP, the end that connects sends first.
  void wait_to_be_addressed() { silent_ = true; }

  /// How many work requests can be added before completions must be seen.
  std::uint32_t space() const { return count_.space(); }
  /// Number of work requests added so far; those up to `completed` are done.
  std::uint32_t added() const { return count_.added(); }
  std::uint32_t completed() const { return count_.completed(); }

  /// A write into the other end's memory, which uses up one of its receives.
  struct Write {
    std::span<const Sge> memory;  ///< read when the request is carried out, unless it is inline; at most pieces_max
    std::uint64_t remote_address = 0;
    std::uint32_t rkey = 0;
    std::uint32_t immediate = 0;
    bool is_inline = false;
    bool last = true;  ///< of its message on this queue pair: says when the memory is free
  };
  /// Requires space.
  void add(const Write& write);
  /// The requests behind it find `memory`, which is part of `mr`, writable through the window, by the key. Requires
  /// space.
  void add_bind(Window& window, std::uint32_t key, Mr& mr, std::span<std::byte> memory);
  /// The key of a window is no longer valid once the request is done, for which it asks for a completion. Requires
  /// space.
  void add_invalidate(std::uint32_t key);
  bool waiting() const { return !waiting_.empty(); }
  /// Posts what was added, in one call. True: all of it; false: there is no space yet, or the peer sends first. Errors:
  /// system.
  Result<bool> post();
  /// A completion says that all requests up to this one are done.
  void complete(WorkWord word) { count_.complete(word.number(), WorkWord::number_mask); }

  /// A receive was used up, and is posted again with the next `post_receives`. Returns its completion with the
  /// immediate, whether a device or a header carried it.
  Completion used_receive(const Completion& completion);
  /// Errors: system.
  Result<void> post_receives();

 private:
  QueuePair(std::shared_ptr<Endpoint> endpoint, const QueueShape& shape)
      : endpoint_(std::move(endpoint)), shape_(shape), count_(shape.sends) {}
  Result<void> make(std::uint32_t sink, std::uint32_t index);
  Result<Qp*> create_queues(QpInit& init);
  Result<void> modify(QpAttributes& attributes, int mask, std::string_view doing);
  std::uint64_t last_id() const { return first_id_ | (count_.added() & WorkWord::number_mask); }

  std::shared_ptr<Endpoint> endpoint_;
  QueueShape shape_;
  Qp* qp_ = nullptr;
  std::uint32_t psn_ = 0;
  std::uint32_t inline_bytes_ = 0;
  std::uint64_t first_id_ = 0;  // of sends; numbers are added
  SendCount count_;
  WaitingSends waiting_;
  std::optional<WriteHeaders> headers_;  // none: the device has immediates
  bool silent_ = false;
  std::uint32_t receives_missing_ = 0;
  std::vector<ReceiveWork> receives_;
};

/// A memory window (type 2): a part of registered memory that the peer of one queue pair may write, as long as the
/// window is open. Requests of the queue pair open and close it, without a system call.
class MemoryWindow {
 public:
  /// Null: the device has no more windows.
  static std::unique_ptr<MemoryWindow> make(std::shared_ptr<Endpoint> endpoint);
  /// The window ends, even if it is open.
  ~MemoryWindow() { (void)window_->context->ops.dealloc_mw(window_); }
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  /// Adds the request that opens the window on `memory`, which is part of `mr`; returns the key for the peer. Requires
  /// space in the queue, and that the window is closed.
  std::uint32_t open(QueuePair& queue, Mr& mr, std::span<std::byte> memory);
  /// Adds the request that closes the window. Requires space in the same queue.
  void close();
  /// The window is open until the device has carried out that request.
  bool is_closed() const {
    return queue_ == nullptr || (closing_ && static_cast<std::int32_t>(queue_->completed() - closed_at_) >= 0);
  }

 private:
  MemoryWindow(std::shared_ptr<Endpoint> endpoint, Window* window)
      : endpoint_(std::move(endpoint)), window_(window), key_(window->rkey) {}

  std::shared_ptr<Endpoint> endpoint_;
  Window* window_;
  std::uint32_t key_;
  QueuePair* queue_ = nullptr;  // which opened it
  bool closing_ = false;
  std::uint32_t closed_at_ = 0;  // number of the request that closes it
};

}  // namespace tutti::verbs
