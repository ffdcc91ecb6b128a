#include "comm/own_addresses.h"

#include <algorithm>

#include "base/interface_choice.h"

namespace tutti {
namespace {

Result<std::vector<OwnAddress>> ask(const Config& config, Log& log) {
  auto all = list_addresses();
  if (!all) return std::move(all).error();
  auto choice = choose_interfaces(
      *all, {.names = config.text("TUTTI_SOCKET_IFNAME"), .family = config.text("TUTTI_SOCKET_FAMILY")});
  if (!choice) return std::move(choice).error();
  for (const auto& line : choice->used_text()) log.info(LogTopic::init, "interfaces", "used: {}", line);
  for (const auto& line : choice->left_out_text()) log.info(LogTopic::init, "interfaces", "not used: {}", line);
  std::vector<OwnAddress> addresses;
  std::vector<std::string> cards;
  for (const auto& one : choice->used) {
    const auto card = std::ranges::find(cards, one.interface) - cards.begin();
    if (card == std::ssize(cards)) cards.push_back(one.interface);
    addresses.push_back({.host = one.address, .card = static_cast<int>(card), .mbps = one.mbps});
  }
  // What is known on one link alone may not even lead back to this host.
  if (choice->used.front().link_local)
    addresses.push_back({.host = "127.0.0.1", .card = static_cast<int>(cards.size())});
  return addresses;
}

}  // namespace

Result<std::vector<OwnAddress>> OwnAddresses::get(System& system, const Config& config, Log& log) {
  const std::lock_guard lock(mutex_);
  if (!known_ && &system != &real_system()) known_ = std::vector<OwnAddress>{{.host = "127.0.0.1"}};
  if (!known_) known_ = ask(config, log);
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
