#include "settings.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace tutti::testing::fake_verbs {
namespace {

std::string text_of(const char* variable, const char* usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : text;
}

std::uint64_t number_of(const char* variable, std::uint64_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 0);
}

std::set<int> numbers_of(const char* variable) {
  std::set<int> numbers;
  std::istringstream all(text_of(variable, ""));
  for (std::string one; std::getline(all, one, ',');) numbers.insert(std::atoi(one.c_str()));
  return numbers;
}

Link link_of(const std::string& name) {
  if (name == "infiniband") return Link::infiniband;
  return name == "iwarp" ? Link::iwarp : Link::ethernet;
}

std::uint32_t address_of(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1 ? ntohl(address.s_addr) : INADDR_LOOPBACK;
}

}  // namespace

Settings read_settings() {
  constexpr std::int64_t ms = 1'000'000;
  constexpr std::uint32_t iwarp_inline = 80;
  Settings settings{.fabric = text_of("FAKE_VERBS_FABRIC", ""),
                    .devices = static_cast<int>(number_of("FAKE_VERBS_DEVICES", 1)),
                    .link = link_of(text_of("FAKE_VERBS_LINK", "ethernet")),
                    .address = address_of(text_of("FAKE_VERBS_ADDRESS", "127.0.0.1")),
                    .lid = static_cast<std::uint16_t>(number_of("FAKE_VERBS_LID", 17)),
                    .ports_down = numbers_of("FAKE_VERBS_PORT_DOWN"),
                    .mtu = static_cast<int>(number_of("FAKE_VERBS_MTU", 3)),
                    .max_inline = static_cast<std::uint32_t>(number_of("FAKE_VERBS_MAX_INLINE", 256)),
                    .max_qp_wr = static_cast<std::uint32_t>(number_of("FAKE_VERBS_MAX_QP_WR", 16384)),
                    .max_cqe = static_cast<std::uint32_t>(number_of("FAKE_VERBS_MAX_CQE", 65536)),
                    .memlock_bytes = number_of("FAKE_VERBS_MEMLOCK", 0),
                    .retry_ns = static_cast<std::int64_t>(number_of("FAKE_VERBS_RETRY_MS", 50)) * ms,
                    .rnr_ns = static_cast<std::int64_t>(number_of("FAKE_VERBS_RNR_MS", 1)) * ms,
                    .deaf_ns = static_cast<std::int64_t>(number_of("FAKE_VERBS_DEAF_MS", 0)) * ms,
                    .windows = number_of("FAKE_VERBS_WINDOWS", 1) != 0,
                    .refuses_binds = number_of("FAKE_VERBS_WINDOWS", 1) == 2,
                    .seed = number_of("FAKE_VERBS_SEED", 0)};
  if (settings.link == Link::iwarp) {
    settings.max_inline = std::min(settings.max_inline, iwarp_inline);
    settings.windows = false;
  }
  settings.devices = std::min(settings.devices, 16);
  return settings;
}

}  // namespace tutti::testing::fake_verbs
