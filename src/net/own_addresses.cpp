#include "net/own_addresses.h"

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "base/interface_choice.h"

namespace tutti {
namespace {

constexpr std::int64_t look_ns = 20'000'000;
// The kernel reports most link changes once a second: a carrier that exists is reported within two.
constexpr std::int64_t patience_ns = 2'000'000'000;

Result<std::vector<OwnAddress>> choose(const std::vector<InterfaceAddress>& all, const InterfaceFilter& filter,
                                       Log& log) {
  auto choice = TUTTI_TRY(choose_interfaces(all, filter));
  for (const auto& line : choice.used_text()) log.info(LogTopic::init, "interfaces", "used: {}", line);
  for (const auto& line : choice.left_out_text()) log.info(LogTopic::init, "interfaces", "not used: {}", line);
  std::vector<OwnAddress> addresses;
  std::vector<std::string> nics;
  for (const auto& one : choice.used) {
    const auto nic = std::ranges::find(nics, one.interface) - nics.begin();
    if (nic == std::ssize(nics)) nics.push_back(one.interface);
    addresses.push_back(
        {.host = one.address, .nic = static_cast<int>(nic), .mbps = one.mbps, .interface = one.interface});
  }
  // A link-local address may not even lead back to this host.
  if (choice.used.front().link_local) addresses.push_back({.host = "127.0.0.1", .nic = static_cast<int>(nics.size())});
  return addresses;
}

}  // namespace

int mtu_of(const std::string& interface) {
  const std::string text = content_of("/sys/class/net/" + interface + "/mtu");
  int mtu = 0;
  std::from_chars(text.data(), text.data() + text.size(), mtu);
  return mtu;
}

bool OwnAddresses::settled(System& system, const Config& config, Log& log) {
  const std::lock_guard lock(mutex_);
  if (known_) return true;
  if (!list_ && &system != &real_system()) {
    known_ = std::vector<OwnAddress>{{.host = "127.0.0.1"}};
    return true;
  }
  const std::int64_t now = system.now_ns();
  const bool first = give_up_ns_ == 0;
  if (first) give_up_ns_ = now + std::min(patience_ns, config.integer("TUTTI_INIT_TIMEOUT_MS") * 1'000'000);
  if (!first && now < next_look_ns_) return false;
  auto all = list_ ? list_() : list_addresses();
  if (!all) {
    known_ = std::move(all).error();
    return true;
  }
  const InterfaceFilter filter{.names = config.text("TUTTI_SOCKET_IFNAME"),
                               .family = config.text("TUTTI_SOCKET_FAMILY")};
  const auto awaited = awaited_interfaces(*all, filter);
  if (!awaited.empty() && now < give_up_ns_) {
    if (first)
      for (const auto& one : awaited) log.info(LogTopic::init, "interfaces", "waiting for a carrier: {}", one);
    next_look_ns_ = std::min(now + look_ns, give_up_ns_);
    return false;
  }
  known_ = choose(*all, filter, log);
  return true;
}

std::int64_t OwnAddresses::next_look_ns() const {
  const std::lock_guard lock(mutex_);
  return next_look_ns_;
}

Result<std::vector<OwnAddress>> OwnAddresses::get(System& system, const Config& config, Log& log) {
  while (!settled(system, config, log)) system.poll({}, std::max<std::int64_t>(0, next_look_ns() - system.now_ns()));
  const std::lock_guard lock(mutex_);
  if (!*known_) return known_->error();
  return **known_;
}

std::vector<std::string> hosts_of(const std::vector<OwnAddress>& addresses) {
  std::vector<std::string> hosts;
  for (const OwnAddress& address : addresses) hosts.push_back(address.host);
  return hosts;
}

std::string listening_address(const std::vector<std::string>& addresses) {
  if (addresses.size() == 1) return addresses.front();
  const auto is_v6 = [](const std::string& address) { return address.find(':') != std::string::npos; };
  return std::ranges::any_of(addresses, is_v6) ? "::" : "0.0.0.0";
}

}  // namespace tutti
