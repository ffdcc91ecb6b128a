#include "comm/own_addresses.h"

#include <algorithm>

#include "base/interface_choice.h"

namespace tutti {
namespace {

Result<std::vector<std::string>> ask(const Config& config, Log& log) {
  auto all = list_addresses();
  if (!all) return std::move(all).error();
  auto choice = choose_interfaces(
      *all, {.names = config.text("TUTTI_SOCKET_IFNAME"), .family = config.text("TUTTI_SOCKET_FAMILY")});
  if (!choice) return std::move(choice).error();
  for (const auto& line : choice->used_text()) log.info(LogTopic::init, "interfaces", "used: {}", line);
  for (const auto& line : choice->left_out_text()) log.info(LogTopic::init, "interfaces", "not used: {}", line);
  std::vector<std::string> addresses;
  for (const auto& one : choice->used) addresses.push_back(one.address);
  // What is known on one link alone may not even lead back to this host.
  if (choice->used.front().link_local) addresses.emplace_back("127.0.0.1");
  return addresses;
}

}  // namespace

Result<std::vector<std::string>> OwnAddresses::get(System& system, const Config& config, Log& log) {
  const std::lock_guard lock(mutex_);
  if (!known_ && &system != &real_system()) known_ = std::vector<std::string>{"127.0.0.1"};
  if (!known_) known_ = ask(config, log);
  if (!*known_) return known_->error();
  return **known_;
}

std::string listening_address(const std::vector<std::string>& addresses) {
  if (addresses.size() == 1) return addresses.front();
  const auto is_v6 = [](const std::string& address) { return address.find(':') != std::string::npos; };
  return std::ranges::any_of(addresses, is_v6) ? "::" : "0.0.0.0";
}

}  // namespace tutti
