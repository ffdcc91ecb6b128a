#include "base/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "base/descriptors.h"
#include "base/unique_fd.h"

namespace tutti {
namespace {

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// The attributes of one netlink message, by their number.
template <class Visit>
void visit_attributes(rtattr* attribute, std::size_t bytes, Visit visit) {
  auto left = static_cast<int>(bytes);
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
    visit(attribute->rta_type, static_cast<char*>(RTA_DATA(attribute)), RTA_PAYLOAD(attribute));
}

std::string attribute_text(const char* data, std::size_t bytes) {
  return {data, ::strnlen(data, bytes)};
}

int attribute_number(const char* data, std::size_t bytes) {
  int value = 0;
  if (bytes >= sizeof value) std::memcpy(&value, data, sizeof value);
  return value;
}

LinkFacts read_link(nlmsghdr* message) {
  auto* const about = static_cast<ifinfomsg*>(NLMSG_DATA(message));
  LinkFacts link{.index = about->ifi_index, .name = {}, .kind = {}, .loopback = (about->ifi_flags & IFF_LOOPBACK) != 0};
  visit_attributes(IFLA_RTA(about), IFLA_PAYLOAD(message), [&](int type, char* data, std::size_t bytes) {
    if (type == IFLA_IFNAME) link.name = attribute_text(data, bytes);
    if (type == IFLA_LINK) link.parent = attribute_number(data, bytes);
    if (type == IFLA_MASTER) link.master = attribute_number(data, bytes);
    if (type != IFLA_LINKINFO) return;
    visit_attributes(reinterpret_cast<rtattr*>(data), bytes, [&](int inner, char* text, std::size_t size) {
      if (inner == IFLA_INFO_KIND) link.kind = attribute_text(text, size);
    });
  });
  return link;
}

/// Asks the kernel by netlink, which, unlike /sys, answers for this network namespace. Nothing if netlink is not
/// permitted.
std::optional<std::vector<LinkFacts>> list_links() {
  const UniqueFd fd(above_stdio([&] { return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); }));
  const timeval limit{.tv_sec = 1, .tv_usec = 0};  // the kernel answers at once, sandboxes may not
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) return std::nullopt;
  struct {
    nlmsghdr header;
    ifinfomsg about;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  if (::send(fd.get(), &request, sizeof request, 0) != sizeof request) return std::nullopt;

  std::vector<LinkFacts> links;
  const auto buffer = std::make_unique<std::array<nlmsghdr, 4096>>();  // 64 KiB, aligned for the messages
  while (true) {
    const ssize_t got = ::recv(fd.get(), buffer->data(), sizeof *buffer, 0);
    if (got <= 0) return std::nullopt;
    auto left = static_cast<unsigned>(got);
    for (auto* message = buffer->data(); NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) return links;
      if (message->nlmsg_type == NLMSG_ERROR) return std::nullopt;
      if (message->nlmsg_type == RTM_NEWLINK) links.push_back(read_link(message));
    }
  }
}

int speed_mbps(int socket, const std::string& name) {
  ethtool_cmd command{};
  command.cmd = ETHTOOL_GSET;
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&command);
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return 0;
  const auto speed = ethtool_cmd_speed(&command);
  return speed > INT_MAX ? 0 : static_cast<int>(speed);  // the kernel's "unknown" is -1
}

bool is_link_local(const sockaddr* address) {
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  const auto v4 = ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
  return v4 >> 16 == 0xa9fe;
}

}  // namespace

std::string_view text(InterfaceKind kind) {
  static constexpr std::string_view names[] = {"device", "tunnel",  "veth pair", "bridge without a device",
                                               "dummy",  "loopback"};
  return names[static_cast<std::size_t>(kind)];
}

InterfaceKind kind_of(const LinkFacts& link, const std::vector<LinkFacts>& links) {
  const auto is_device = [](const LinkFacts& one) { return one.kind.empty() && !one.loopback; };
  if (link.loopback) return InterfaceKind::loopback;
  if (is_device(link) || one_of(link.kind, {"bond", "team", "ipoib", "netvsc", "failover"}))
    return InterfaceKind::device;
  if (link.kind == "veth") return InterfaceKind::pair;
  if (one_of(link.kind, {"dummy", "ifb", "nlmon"})) return InterfaceKind::dummy;
  if (link.kind == "bridge") {
    const bool stands_on_device = std::ranges::any_of(links, [&](const LinkFacts& port) {
      return port.master == link.index && (is_device(port) || one_of(port.kind, {"bond", "team", "vlan"}));
    });
    return stands_on_device ? InterfaceKind::device : InterfaceKind::bridge;
  }
  if (!one_of(link.kind, {"vlan", "macvlan", "ipvlan", "macsec"})) return InterfaceKind::tunnel;
  const auto parent = std::ranges::find(links, link.parent, &LinkFacts::index);
  // A link has a smaller index than links on top of it, so the recursion ends. In a container the link below is
  // outside.
  if (parent == links.end() || parent->index >= link.index) return InterfaceKind::device;
  return kind_of(*parent, links);
}

InterfaceKind kind_of_name(std::string_view name) {
  const auto begins = [name](std::initializer_list<std::string_view> prefixes) {
    return std::ranges::any_of(prefixes, [name](std::string_view prefix) { return name.starts_with(prefix); });
  };
  if (name == "lo") return InterfaceKind::loopback;
  if (begins({"docker", "br-", "virbr", "cni", "podman", "lxcbr", "lxdbr"})) return InterfaceKind::bridge;
  if (begins({"veth", "cali", "lxc"})) return InterfaceKind::pair;
  if (begins({"tun", "tap", "wg", "vxlan", "flannel", "vnet", "gre", "sit"})) return InterfaceKind::tunnel;
  if (begins({"dummy", "ifb"})) return InterfaceKind::dummy;
  return InterfaceKind::device;
}

Result<std::vector<InterfaceAddress>> list_addresses() {
  ifaddrs* first = nullptr;
  const HeldStdio held;
  if (::getifaddrs(&first) != 0)
    return Error{.code = Code::system, .what = "list the network interfaces", .sys_errno = errno};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, ::freeifaddrs);
  const UniqueFd any_socket(above_stdio([&] { return ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }));

  std::map<std::string, InterfaceKind> kinds;
  if (const auto links = list_links())
    for (const auto& link : *links) kinds[link.name] = kind_of(link, *links);

  std::vector<InterfaceAddress> list;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char numeric[NI_MAXHOST];
    const socklen_t bytes = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (::getnameinfo(one->ifa_addr, bytes, numeric, sizeof numeric, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const std::string name = one->ifa_name;
    const auto known = kinds.find(name);
    const unsigned needed = IFF_UP | IFF_RUNNING;
    list.push_back({.interface = name,
                    .address = numeric,
                    .ipv6 = family == AF_INET6,
                    .kind = known == kinds.end() ? kind_of_name(name) : known->second,
                    .up = (one->ifa_flags & needed) == needed,
                    .link_local = is_link_local(one->ifa_addr),
                    .mbps = any_socket ? speed_mbps(any_socket.get(), name) : 0});
  }
  return list;
}

}  // namespace tutti
