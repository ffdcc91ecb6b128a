// A network whose faults are ours: TAP interfaces of several namespaces, and a process that carries packets between
// them, and does to some of them what bad networks do.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tutti::testing {

/// The calling thread joins the network namespace of that process; whether it could.
bool enter_namespace_of(pid_t pid);

/// Chances are those of each packet.
struct WireFaults {
  double loss = 0;
  double corrupt = 0;      ///< a bit is changed somewhere behind the Ethernet header
  double repeat = 0;       ///< comes twice
  double late = 0;         ///< comes 3 ms after its time: those behind it overtake it
  int delay_us = 0;        ///< one way
  int mbps = 0;            ///< of what goes to one host; 64 KiB wait in front of that, and more are lost. 0: no limit
  int announced_mbps = 0;  ///< what the interfaces say; 0: as TAP interfaces do
  std::uint64_t seed = 1;
};

struct WireCounts {
  std::uint64_t carried = 0;
  std::uint64_t lost = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t repeated = 0;
  std::uint64_t late = 0;
  std::uint64_t crowded_out = 0;  ///< for want of room where the rate is limited
};

/// Ends with its owner. Which packets are hit depends on the seed and on when they come, so it differs from run to run.
class PacketWire {
 public:
  /// Why there can be none here.
  static std::optional<std::string> unavailable();

  /// Makes an interface of that name in the network namespace of each process. It is for the owner to switch them on,
  /// once they have hardware_address.
  PacketWire(std::span<const pid_t> holders, const std::string& interface, const WireFaults& faults);
  ~PacketWire();
  PacketWire(const PacketWire&) = delete;
  PacketWire& operator=(const PacketWire&) = delete;

  bool made() const { return pid_ > 0; }
  static std::string hardware_address(int host);

  /// All packets from and to the host are lost from now on, or no more.
  void cut(int host, bool is_cut = true);
  /// Packets of more bytes than this (with their Ethernet header) are lost from now on; 0: none for that.
  void lose_larger_than(std::uint64_t bytes);
  WireCounts counts() const;

 private:
  struct Shared;
  struct Carrier;

  Shared* shared_ = nullptr;
  pid_t pid_ = -1;
};

}  // namespace tutti::testing
