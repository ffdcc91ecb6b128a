// The RDMA ports of this machine, and which of them to use.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/verbs/library.h"

namespace tutti::verbs {

struct Port;

/// What a device has said of itself that ends the use of it, or of one of its queues. Such a device may never complete
/// what it was given, so nothing else shows it. Thread-safe.
class DeviceFaults {
 public:
  /// Grows with each fault; a reader looks again when it has.
  unsigned count() const { return count_.load(std::memory_order_acquire); }
  /// `queue`: the completion queue that is broken, or whose queue pair is; null: all of the device.
  void add(const Cq* queue, const std::string& words) {
    const std::lock_guard lock(mutex_);
    words_.emplace(queue, words);
    count_.fetch_add(1, std::memory_order_release);
  }
  /// Why this queue cannot be used any more.
  std::optional<std::string> of(const Cq* queue) const {
    const std::lock_guard lock(mutex_);
    for (const Cq* const one : {static_cast<const Cq*>(nullptr), queue})
      if (const auto known = words_.find(one); known != words_.end()) return known->second;
    return std::nullopt;
  }
  /// The queue exists no more, and another one may get its address.
  void forget(const Cq* queue) {
    const std::lock_guard lock(mutex_);
    words_.erase(queue);
  }

 private:
  std::atomic<unsigned> count_ = 0;
  mutable std::mutex mutex_;
  std::map<const Cq*, std::string> words_;
};

/// Whether a device can open memory windows. Some say that they have them, and refuse each request, as driver or
/// firmware do not fit. A refused request ends its queue pair and all that is under way on it, so a queue pair without
/// messages tries first. One trial for each open device. Thread-safe.
class WindowTrial {
 public:
  /// Opens a window on memory of this process and closes it, on a queue pair that is connected to itself. Takes some
  /// milliseconds the first time. False: the device refuses, or does not answer for a fifth of a second.
  bool passes(const Port& port);
  /// Why not, for the log: only the first call after the trial returns it.
  std::optional<std::string> take_trouble();

 private:
  std::mutex mutex_;
  bool tried_ = false;
  std::optional<std::string> trouble_;
  bool taken_ = false;
};

/// An open device; closed when its last user is gone.
class OpenDevice {
 public:
  OpenDevice(std::shared_ptr<const Library> of, Context* opened, std::string called)
      : library(std::move(of)), context(opened), name(std::move(called)) {}
  ~OpenDevice() { (void)library->ibv_close_device(context); }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  const std::shared_ptr<const Library> library;
  Context* const context;
  const std::string name;
  DeviceAttributes attributes{};  ///< written before anybody else has the device
  bool known = false;             ///< they could be queried
  DeviceFaults faults;
  WindowTrial windows;
};

/// Where a port is, as the other end must know it.
struct PortAddress {
  LinkLayer link_layer = LinkLayer::unspecified;
  bool iwarp = false;
  std::uint16_t lid = 0;
  std::int32_t mtu = 0;
  Gid gid{};
};

/// An active port with the address at which peers reach it.
struct Port {
  std::shared_ptr<OpenDevice> device;
  std::uint8_t number = 1;
  LinkLayer link_layer = LinkLayer::unspecified;
  std::uint16_t lid = 0;
  int mtu = 0;            ///< active; ibv_mtu
  std::int64_t mbps = 0;  ///< from width and speed; 0: unknown
  Gid gid{};              ///< with iWARP: the IP address
  std::uint8_t gid_index = 0;
  int numa = -1;                        ///< its NUMA node; -1: unknown
  bool iwarp = false;                   ///< no immediates, and connections by rdma_cm alone
  std::shared_ptr<const CmLibrary> cm;  ///< set with iWARP

  /// "mlx5_0 port 1 (RoCE v2, 100000 Mbit/s, GID 3 ::ffff:10.0.0.1)"
  std::string text() const;
  PortAddress address() const { return {.link_layer = link_layer, .iwarp = iwarp, .lid = lid, .mtu = mtu, .gid = gid}; }
  /// "make a completion queue on …". `code`: an errno; some drivers return negative ones.
  Error failed(std::string_view doing, int code) const;
  /// Why it cannot be used now, as the device says it: "down". Nothing: it is active.
  std::optional<std::string> trouble() const;
};

/// What the user asks for.
struct PortFilter {
  std::string verbs_library;  ///< path of libibverbs, see CmLibrary::load
  std::string names;          ///< TUTTI_IB_HCA: "mlx5_0:1,mlx5_1", "=mlx5_0", "^mlx5_2", "^=mlx5_2:1"; empty: all
  int gid_index = -1;         ///< TUTTI_IB_GID_INDEX; -1: chosen by content
};

struct PortList {
  std::vector<Port> ports;            ///< fastest first; those with iWARP last
  std::vector<std::string> left_out;  ///< "mlx5_1 port 1: down" for each other port, for the log
  bool unopened = false;              ///< a device could not be opened
  bool excluded = false;              ///< the filter leaves one out
  bool unmet = false;                 ///< one lacks what is asked for
};

/// Opens all devices, except those that are `open` and well, and lists their active ports. Errors: system (the list of
/// devices cannot be read).
Result<PortList> list_ports(const std::shared_ptr<const Library>& library, const PortFilter& filter,
                            const std::vector<std::shared_ptr<OpenDevice>>& open = {});

/// "transport retry counter exceeded (status 12)"
std::string text(const Library& library, Status status);

/// The index of the port with the address over which the peer was reached (`own_address`, of IPv4 or IPv6): it is
/// proven. If no port has it, the fastest ports in turn by channel: those of the device `nearest` to the rank and of
/// its NUMA node if there are some among them, else all. `ports`: fastest first, at least one.
std::size_t choose_port(std::span<const Port> ports, const std::string& own_address, std::string_view nearest,
                        int channel);

/// The address, with a port number, for functions that take a sockaddr.
sockaddr_storage socket_address(const Gid& address, std::uint16_t port);

}  // namespace tutti::verbs
