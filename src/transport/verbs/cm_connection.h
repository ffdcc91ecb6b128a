// The connection of one queue pair by rdma_cm, for devices whose queue pairs are connected in no other way (iWARP).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/system.h"
#include "transport/verbs/port.h"

namespace tutti::verbs {

/// Both ends know it, and nobody else: who connects shows it, and it is good for one connection.
using CmToken = std::array<std::byte, 32>;

/// Where an end listens.
struct CmAddress {
  Gid address{};
  std::uint16_t port = 0;
};

/// The queue pair is not librdmacm's: rdma_cm is told its number. Destroy the queue pair first. Used by one thread at a
/// time; never blocks, except that its end waits for the kernel to give up a connection that is under way.
class CmConnection {
 public:
  /// Waits at a port of its own for a peer with the token. Errors: system.
  static Result<std::unique_ptr<CmConnection>> listen(const Port& port, std::uint32_t queue_pair, const CmToken& token);
  /// Errors: system.
  static Result<std::unique_ptr<CmConnection>> connect(const Port& port, std::uint32_t queue_pair, const CmToken& token,
                                                       const CmAddress& peer);

  CmAddress address() const;

  /// True once the queue pair is connected. Errors: system, remote (the peer refused).
  Result<bool> advance();
  /// What to wait for until then.
  PollItem interest() const { return {.handle = channel_->fd, .want_read = true}; }

 private:
  CmConnection(const Port& port, std::uint32_t queue_pair, const CmToken& token)
      : port_(port), library_(port.cm), queue_pair_(queue_pair), token_(token) {}
  Result<void> open();
  Result<void> check_device() const;
  Result<void> handle(const CmEvent& event);
  Result<void> consider(const CmEvent& request);
  CmParameters parameters() const;

  struct Destroy {
    std::shared_ptr<const CmLibrary> library;
    void operator()(CmId* id) const { (void)library->rdma_destroy_id(id); }
    void operator()(CmChannel* channel) const { library->rdma_destroy_event_channel(channel); }
  };

  Port port_;
  std::shared_ptr<const CmLibrary> library_;
  std::uint32_t queue_pair_;
  CmToken token_;
  bool connected_ = false;
  std::unique_ptr<CmChannel, Destroy> channel_;
  std::unique_ptr<CmId, Destroy> id_;        // listens, or connects
  std::unique_ptr<CmId, Destroy> accepted_;  // the connection of an end that listened
};

}  // namespace tutti::verbs
