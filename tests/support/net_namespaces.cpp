#include "support/net_namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include <fmt/format.h>

namespace tutti::testing {
namespace {

/// Ends with its parent; writes a byte once it is where it should be.
pid_t fork_holder() {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return -1;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent || ::unshare(CLONE_NEWNET) != 0) ::_exit(1);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::close(ready[0]);
    ::close(ready[1]);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte = 0;
  const bool there = pid > 0 && ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  if (there || pid < 0) return there ? pid : -1;
  ::waitpid(pid, nullptr, 0);
  return -1;
}

/// `ip` with those words, in the namespace of `pid` (0: here).
bool run_ip(pid_t pid, const std::string& words, bool quiet = false) {
  std::vector<std::string> split = {"ip"};
  std::istringstream stream(words);
  for (std::string word; stream >> word;) split.push_back(word);
  std::vector<char*> argv;
  for (auto& word : split) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (pid != 0 && !enter_namespace_of(pid)) ::_exit(126);
    if (quiet) {
      const int nowhere = ::open("/dev/null", O_RDWR);
      ::dup2(nowhere, STDOUT_FILENO);
      ::dup2(nowhere, STDERR_FILENO);
    }
    ::execvp("ip", argv.data());
    ::_exit(127);
  }
  int status = 0;
  const bool well = child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!well && !quiet) std::fprintf(stderr, "ip %s: failed\n", words.c_str());
  return well;
}

/// On the bridge.
std::string port_name(int host, int nic) {
  return fmt::format("port{}_{}", host, nic);
}

void end(pid_t pid) {
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

}  // namespace

std::optional<std::string> NetNamespaces::unavailable() {
  if (::geteuid() != 0) return "network namespaces need root";
  if (!run_ip(0, "-V", /*quiet=*/true)) return "there is no ip command (iproute2)";
  const pid_t holder = fork_holder();
  if (holder < 0) return "network namespaces are not allowed here";
  const bool works = run_ip(holder, "link add name probe type bridge", /*quiet=*/true);
  end(holder);
  if (!works) return "bridges are not allowed here";
  return std::nullopt;
}

NetNamespaces::NetNamespaces(const NetOptions& options) : options_(options), bridge_(fork_holder()) {
  if (bridge_ < 0) return;
  for (int host = 0; host < options.hosts; ++host) {
    holders_.push_back(fork_holder());
    if (holders_.back() < 0 || !ip(host, "link set lo up")) return;
  }
  for (int nic = 0; nic < options.nics; ++nic) {
    if (!options.faults.empty()) {
      const auto& faults = options.faults[std::min(wires_.size(), options.faults.size() - 1)];
      wires_.push_back(std::make_unique<PacketWire>(holders_, fmt::format("eth{}", nic), faults));
      if (!wires_.back()->made()) return;
    } else if (!ip(bridge, fmt::format("link add name br{} type bridge", nic)) ||
               !ip(bridge, fmt::format("link set br{} up", nic))) {
      return;
    }
    for (int host = 0; host < options.hosts; ++host)
      if (!connect(host, nic)) return;
  }
  made_ = true;
}

NetNamespaces::~NetNamespaces() {
  end(bridge_);
  for (const pid_t pid : holders_) end(pid);
}

bool NetNamespaces::connect(int host, int nic) {
  const auto eth = fmt::format("eth{}", nic);
  const auto port = port_name(host, nic);
  bool well = true;
  if (!options_.faults.empty())
    well = ip(host, fmt::format("link set {} address {}", eth, PacketWire::hardware_address(host)));
  else
    well = ip(bridge, fmt::format("link add name {} type veth peer name {} netns {}", port, eth, holder(host))) &&
           ip(bridge, fmt::format("link set {} master br{}", port, nic)) &&
           ip(bridge, fmt::format("link set {} up", port));
  well = well && ip(host, fmt::format("link set {} up", eth));
  if (options_.ipv4) well = well && ip(host, fmt::format("addr add 10.77.{}.{}/24 dev {}", nic, host + 1, eth));
  // Without nodad an address cannot be used for a second or two.
  if (options_.ipv6)
    well = well && ip(host, fmt::format("addr add fd77:{:x}::{:x}/64 dev {} nodad", nic, host + 1, eth));
  return well;
}

bool NetNamespaces::cut(int host, int nic) const {
  if (options_.faults.empty()) return ip(bridge, fmt::format("link set {} down", port_name(host, nic)));
  wires_[static_cast<std::size_t>(nic)]->cut(host);
  return true;
}

bool NetNamespaces::enter(int host) const {
  return enter_namespace_of(holder(host));
}

std::string NetNamespaces::address(int host, int nic) const {
  // As it is printed: without a group of zeros.
  const auto ipv6 = nic == 0 ? std::string("fd77::") : fmt::format("fd77:{:x}::", nic);
  return options_.ipv4 ? fmt::format("10.77.{}.{}", nic, host + 1) : fmt::format("{}{:x}", ipv6, host + 1);
}

bool NetNamespaces::ip(int host, const std::string& words) const {
  return run_ip(holder(host), words);
}

bool NetNamespaces::blackhole(int host, int other) const {
  return ip(host, fmt::format("route add blackhole {}", address(other)));
}

}  // namespace tutti::testing
