#include "support/packet_wire.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tutti::testing {
namespace {

constexpr int hosts_max = 8;
constexpr std::int64_t late_ns = 3'000'000;
constexpr std::int64_t room_bits = 8 * 64 * 1024;
constexpr std::size_t header_bytes = 14;
constexpr std::size_t frame_bytes_max = 2'048;
constexpr int frames_at_once = 32;  // of one host, before the others have their turn

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// What the interface is to say of itself. Left as it is where that is not allowed.
void announce(const std::string& interface, int mbps) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ethtool_cmd command{};
  command.cmd = ETHTOOL_SSET;
  ethtool_cmd_speed_set(&command, static_cast<__u32>(mbps));
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&command);
  (void)::ioctl(fd, SIOCETHTOOL, &request);
  ::close(fd);
}

/// A TAP interface in the namespace of the calling thread; −1.
int open_tap(const std::string& interface) {
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (::ioctl(fd, TUNSETIFF, &request) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

bool enter_namespace_of(pid_t pid) {
  const int fd = ::open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool entered = ::setns(fd, CLONE_NEWNET) == 0;
  ::close(fd);
  return entered;
}

/// What both processes see.
struct PacketWire::Shared {
  std::atomic<std::uint64_t> carried, lost, corrupted, repeated, late, crowded_out;
  std::atomic<bool> cut[hosts_max];
  std::atomic<std::uint64_t> bytes_max;  // 0: no limit
};

/// The process between the interfaces.
struct PacketWire::Carrier {
  using Frame = std::vector<std::byte>;
  struct Due {
    int host;
    Frame frame;
  };

  WireFaults faults;
  Shared& shared;
  std::vector<int> taps = {};  // by host
  std::mt19937_64 random{faults.seed};
  std::multimap<std::int64_t, Due> under_way = {};  // by when they arrive; of those that do together the first first
  std::vector<std::int64_t> free_ns = {};           // by host: when all that waits in front of it is through

  bool chance(double of) { return of > 0 && std::uniform_real_distribution<>(0, 1)(random) < of; }

  bool open(std::span<const pid_t> holders, const std::string& interface) {
    for (const pid_t holder : holders) {
      if (!enter_namespace_of(holder)) return false;
      taps.push_back(open_tap(interface));
      if (taps.back() < 0) return false;
      if (faults.announced_mbps > 0) announce(interface, faults.announced_mbps);
    }
    free_ns.resize(taps.size());
    return taps.size() <= hosts_max;
  }

  void carry_for_ever() {
    for (;;) {
      std::vector<pollfd> polled;
      for (const int tap : taps) polled.push_back({.fd = tap, .events = POLLIN, .revents = 0});
      const std::int64_t next = under_way.empty() ? 0 : std::max<std::int64_t>(0, under_way.begin()->first - now_ns());
      const timespec left{.tv_sec = next / 1'000'000'000, .tv_nsec = next % 1'000'000'000};
      ::ppoll(polled.data(), polled.size(), under_way.empty() ? nullptr : &left, nullptr);
      for (std::size_t host = 0; host < taps.size(); ++host)
        if (polled[host].revents != 0) take_from(static_cast<int>(host));
      deliver();
    }
  }

  void take_from(int host) {
    Frame frame(frame_bytes_max);
    for (int i = 0; i < frames_at_once; ++i) {
      frame.resize(frame_bytes_max);
      const ssize_t got = ::read(taps[static_cast<std::size_t>(host)], frame.data(), frame.size());
      if (got <= static_cast<ssize_t>(header_bytes)) return;
      frame.resize(static_cast<std::size_t>(got));
      const bool to_all = (frame[0] & std::byte{1}) != std::byte{0};
      for (int to = 0; to < static_cast<int>(taps.size()); ++to)
        if (to != host && (to_all || frame[5] == static_cast<std::byte>(to + 1))) pass(host, to, frame);
    }
  }

  void pass(int from, int to, const Frame& frame) {
    const bool large = shared.bytes_max != 0 && frame.size() > shared.bytes_max;
    if (large || shared.cut[from] || shared.cut[to] || chance(faults.loss)) {
      ++shared.lost;
      return;
    }
    const std::int64_t now = now_ns();
    std::int64_t arrives = now;
    if (faults.mbps > 0) {
      auto& free = free_ns[static_cast<std::size_t>(to)];
      const std::int64_t waits_ns = std::max<std::int64_t>(0, free - now);
      if (waits_ns * faults.mbps / 1'000 > room_bits) {
        ++shared.crowded_out;
        return;
      }
      arrives = free = now + waits_ns + static_cast<std::int64_t>(frame.size()) * 8'000 / faults.mbps;
    }
    arrives += faults.delay_us * std::int64_t{1'000};
    if (chance(faults.late)) {
      arrives += late_ns;
      ++shared.late;
    }
    if (chance(faults.repeat)) {
      under_way.insert({arrives, {to, frame}});
      ++shared.repeated;
    }
    const auto put = under_way.insert({arrives, {to, frame}});
    if (!chance(faults.corrupt)) return;
    auto& hit = put->second.frame;
    const auto at = std::uniform_int_distribution<std::size_t>(header_bytes, hit.size() - 1)(random);
    hit[at] ^= std::byte{1} << std::uniform_int_distribution<>(0, 7)(random);
    ++shared.corrupted;
  }

  void deliver() {
    while (!under_way.empty() && under_way.begin()->first <= now_ns()) {
      const Due due = std::move(under_way.begin()->second);
      under_way.erase(under_way.begin());
      const ssize_t put = ::write(taps[static_cast<std::size_t>(due.host)], due.frame.data(), due.frame.size());
      ++(put < 0 ? shared.crowded_out : shared.carried);  // an interface that is switched off takes none
    }
  }
};

std::optional<std::string> PacketWire::unavailable() {
  const int fd = open_tap("tutti_probe");
  if (fd < 0) return "TAP interfaces are not allowed here";
  ::close(fd);
  return std::nullopt;
}

std::string PacketWire::hardware_address(int host) {
  return fmt::format("02:77:00:00:00:{:02x}", host + 1);
}

PacketWire::PacketWire(std::span<const pid_t> holders, const std::string& interface, const WireFaults& faults) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int ready[2];
  if (memory == MAP_FAILED || ::pipe2(ready, O_CLOEXEC) != 0) return;
  shared_ = new (memory) Shared{};
  const pid_t parent = ::getpid();
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Carrier carrier{.faults = faults, .shared = *shared_};
    if (::getppid() != parent || !carrier.open(holders, interface)) ::_exit(1);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    carrier.carry_for_ever();
  }
  ::close(ready[1]);
  char byte = 0;
  const bool there = pid > 0 && ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  if (there) pid_ = pid;
  if (!there && pid > 0) ::waitpid(pid, nullptr, 0);
}

PacketWire::~PacketWire() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (shared_ != nullptr) ::munmap(shared_, sizeof *shared_);
}

void PacketWire::cut(int host, bool is_cut) {
  shared_->cut[host] = is_cut;
}

void PacketWire::lose_larger_than(std::uint64_t bytes) {
  shared_->bytes_max = bytes;
}

WireCounts PacketWire::counts() const {
  return {.carried = shared_->carried,
          .lost = shared_->lost,
          .corrupted = shared_->corrupted,
          .repeated = shared_->repeated,
          .late = shared_->late,
          .crowded_out = shared_->crowded_out};
}

}  // namespace tutti::testing
