// What one communicator has on one RDMA port: protection domain, completion queue, and the channel that wakes a
// sleeper.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "base/unique_fd.h"
#include "transport/verbs/port.h"
#include "transport/verbs/registrations.h"

namespace tutti::verbs {

/// Gets the completions of its own work requests, from the thread that polls the endpoint.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void complete(const Completion& completion) = 0;
  /// The completion queue itself is broken.
  virtual void fail(const Error& error) = 0;
};

/// Work request ids: the sink's number in the upper half, the sink's own word in the lower.
constexpr std::uint64_t work_id(std::uint32_t sink, std::uint32_t word) {
  return std::uint64_t{sink} << 32 | word;
}

/// The rank that has an endpoint, for errors.
struct Owner {
  int rank = -1;
  std::string name;  ///< "rank 2/8 (process 48211 on node-b)"
};

/// Polled by one thread at a time, the one that drives the communicator; sinks come and go on any thread.
class Endpoint {
 public:
  /// For at most `sinks_max` sinks, each with at most `completions_max` completions under way. Fewer sinks if the
  /// device cannot hold so many completions. Errors: system.
  /// `memory`: without segments, messages carry copies only. `windows`: peers may write into memory through memory
  /// windows, if the device has those.
  static Result<std::shared_ptr<Endpoint>> open(const Port& port, std::size_t sinks_max, std::size_t completions_max,
                                                const UsableMemory& memory = {}, bool windows = true, Owner owner = {});
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const Port port;
  const Owner owner;
  const Library& library() const { return *port.device->library; }
  Pd* pd() const { return pd_; }
  Cq* cq() const { return cq_; }
  /// Whether queue pairs open memory windows on registered segments.
  bool windows() const { return windows_; }
  /// Null: messages carry copies only. For the thread that polls.
  Registrations* registrations() { return registrations_ ? &*registrations_ : nullptr; }

  /// The sink's number, which is never given again: completions of a sink that has gone may come late. Errors: system
  /// (the completion queue is as long as the device permits). A sink must not go while another thread may poll.
  Result<std::uint32_t> attach(CompletionSink* sink);
  void detach(std::uint32_t number) { sinks_[number].store(nullptr, std::memory_order_release); }

  /// Hands out all completions that are there. True: there were some.
  bool poll();

  /// Adds the handle to wait for until there are completions. A completion that came before is seen by this call, which
  /// then adds a handle that is ready, so that the caller looks again.
  void poll_set(std::vector<PollItem>& items);

 private:
  Endpoint(Port of, Owner by) : port(std::move(of)), owner(std::move(by)) {}
  Result<void> create(std::size_t sinks_max, std::size_t completions_max);
  void fail_all(const Error& error);
  bool has_fault();
  void take_events();

  Pd* pd_ = nullptr;
  CompletionChannel* channel_ = nullptr;
  Cq* cq_ = nullptr;
  std::optional<Registrations> registrations_;
  UniqueFd ready_;  // always readable
  bool armed_ = false;
  bool broken_ = false;
  bool windows_ = false;
  unsigned seen_faults_ = 0;  // of the device
  std::atomic<std::uint32_t> attached_ = 0;
  std::vector<std::atomic<CompletionSink*>> sinks_;
};

/// Memory of the library that a device may read, or that the peer may write.
class RegisteredMemory {
 public:
  /// `access`: access_flag. Errors: system (no memory, or more than the process may lock, with the remedy).
  static Result<RegisteredMemory> make(const std::shared_ptr<Endpoint>& endpoint, std::size_t bytes, int access);

  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  Mr& region() const { return *mr_; }
  std::uint32_t lkey() const { return mr_->lkey; }
  std::uint32_t rkey() const { return mr_->rkey; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_.get()); }

 private:
  static constexpr std::align_val_t page{4096};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, page); }
  };
  struct Deregister {
    std::shared_ptr<Endpoint> endpoint;
    void operator()(Mr* mr) const { (void)endpoint->library().ibv_dereg_mr(mr); }
  };
  std::unique_ptr<std::byte, Free> data_;  // freed after its registration
  std::size_t bytes_ = 0;
  std::unique_ptr<Mr, Deregister> mr_;
};

}  // namespace tutti::verbs
