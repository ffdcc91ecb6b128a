#include "transport/verbs/port.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "base/file.h"

namespace tutti::verbs {
namespace {

std::string_view name_of(PortState state) {
  switch (state) {
    case PortState::down: return "down";
    case PortState::init: return "not configured yet";
    case PortState::armed: return "armed, not active";
    case PortState::nop:
    case PortState::active:
    case PortState::active_defer: break;
  }
  return "not active";  // also a state that is newer than this
}

/// The address of IPv4 in the form of a GID.
Gid mapped(const in_addr& four) {
  Gid gid{};
  gid[10] = gid[11] = 0xff;
  std::memcpy(&gid[12], &four, sizeof four);
  return gid;
}

bool maps_ipv4(const Gid& address) {
  return std::all_of(address.begin(), address.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
         address[10] == 0xff && address[11] == 0xff;
}

bool is_link_local(const Gid& address) {
  return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

/// "fe80::1" or "::ffff:10.0.0.1"
std::string written(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  return ::inet_ntop(AF_INET6, gid.data(), text, sizeof text) == nullptr ? "?" : text;
}

/// The type of a GID as sysfs says it, for libraries that do not.
GidType type_in_sysfs(const std::string& device, int port, int index) {
  const std::string text =
      content_of(fmt::format("/sys/class/infiniband/{}/ports/{}/gid_attrs/types/{}", device, port, index));
  return text.substr(0, text.find('\n')) == "RoCE v2" ? GidType::roce_v2 : GidType::roce_v1;
}

std::optional<GidEntry> read_gid(const OpenDevice* device, int port, int index, LinkLayer layer) {
  GidEntry entry{};
  const Library& library = *device->library;
  if (library.ibv_query_gid_ex != nullptr &&
      library.ibv_query_gid_ex(device->context, static_cast<std::uint32_t>(port), static_cast<std::uint32_t>(index),
                               &entry, 0, sizeof entry) == 0)
    return entry.gid == Gid{} ? std::nullopt : std::optional(entry);
  if (library.ibv_query_gid(device->context, static_cast<std::uint8_t>(port), index, &entry.gid) != 0 ||
      entry.gid == Gid{})
    return std::nullopt;
  entry.gid_index = static_cast<std::uint32_t>(index);
  entry.gid_type = layer == LinkLayer::infiniband ? GidType::infiniband : type_in_sysfs(device->name, port, index);
  return entry;
}

/// RoCE v2 can be routed, v1 cannot; an address of IPv4 is the one that hosts most often have in common.
int worth(const GidEntry& entry) {
  return (entry.gid_type == GidType::roce_v2 ? 4 : 0) + (maps_ipv4(entry.gid) ? 2 : 0) +
         (is_link_local(entry.gid) ? 0 : 1);
}

/// Numbers of GIDs differ between hosts, so the GID is chosen by its content.
std::optional<GidEntry> choose_gid(const OpenDevice* device, int port, const PortAttributes& attributes, int wanted) {
  if (wanted >= 0) return read_gid(device, port, wanted, attributes.link_layer);
  if (attributes.link_layer == LinkLayer::infiniband) return read_gid(device, port, 0, attributes.link_layer);
  std::optional<GidEntry> best;
  for (int index = 0; index < attributes.gid_tbl_len && index < 256; ++index)
    if (const auto entry = read_gid(device, port, index, attributes.link_layer);
        entry && (!best || worth(*entry) > worth(*best)))
      best = entry;
  return best;
}

constexpr std::size_t mac_bytes = 6;

struct Free {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

bool has_mac(const ifaddrs& one, std::span<const std::uint8_t> mac) {
  if (one.ifa_addr == nullptr || one.ifa_addr->sa_family != AF_PACKET) return false;
  sockaddr_ll link{};
  std::memcpy(&link, one.ifa_addr, sizeof link);
  return link.sll_halen == mac_bytes && std::equal(mac.begin(), mac.end(), link.sll_addr);
}

std::optional<Gid> address_of(const ifaddrs& one) {
  if (one.ifa_addr == nullptr) return std::nullopt;
  if (one.ifa_addr->sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, one.ifa_addr, sizeof four);
    return mapped(four.sin_addr);
  }
  if (one.ifa_addr->sa_family != AF_INET6) return std::nullopt;
  Gid address{};
  sockaddr_in6 six{};
  std::memcpy(&six, one.ifa_addr, sizeof six);
  std::memcpy(address.data(), &six.sin6_addr, address.size());
  // A link-local address says nothing without an interface, whose number the peer does not know.
  return is_link_local(address) ? std::nullopt : std::optional(address);
}

/// The IP address of an iWARP port, by which rdma_cm finds it: an address of the network interface whose MAC address is
/// the beginning of the port's GID, as it is with iWARP; IPv4 before IPv6, in the form of a GID. Nothing: there is no
/// such interface, or it has no address.
std::optional<Gid> iwarp_address(const Gid& gid) {
  if (maps_ipv4(gid)) return gid;
  ifaddrs* list = nullptr;
  const HeldStdio held;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, Free> all(list);
  std::optional<Gid> found;
  for (const ifaddrs* port = list; port != nullptr; port = port->ifa_next) {
    if (!has_mac(*port, std::span(gid).first(mac_bytes))) continue;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (std::string_view(one->ifa_name) != port->ifa_name) continue;
      const auto address = address_of(*one);
      if (address && (!found || (maps_ipv4(*address) && !maps_ipv4(*found)))) found = address;
    }
  }
  return found;
}

/// Completes a port of an iWARP device, or says why it cannot be used. Its GIDs are no addresses.
Result<void> add_iwarp(Port& port, const PortFilter& filter) {
  const auto gid = read_gid(port.device.get(), port.number, 0, port.link_layer);
  const auto address = gid ? iwarp_address(gid->gid) : std::nullopt;
  if (!address) return Error{.code = Code::system, .what = "its network interface has no address (iWARP)"};
  port.cm = TUTTI_TRY(CmLibrary::load(filter.verbs_library));
  port.iwarp = true;
  port.gid = *address;
  port.gid_index = 0;
  return {};
}

/// -1: unknown, as for devices in software.
int numa_of(const std::string& device) {
  const auto text = read_file("/sys/class/infiniband/" + device + "/device/numa_node", 64);
  int node = -1;
  if (text) std::from_chars(text->data(), text->data() + text->size(), node);
  return node;
}

/// The one that is open already, if it is well: queues of other communicators use it.
std::shared_ptr<OpenDevice> open_device(const std::shared_ptr<const Library>& library, Device* device,
                                        const std::string& name, const std::vector<std::shared_ptr<OpenDevice>>& open) {
  const auto known = std::ranges::find(open, name, [](const auto& one) -> const std::string& { return one->name; });
  if (known != open.end() && !(*known)->faults.of(nullptr)) return *known;
  Context* const context = library->ibv_open_device(device);
  if (context == nullptr) return nullptr;
  auto opened = std::make_shared<OpenDevice>(library, context, name);
  opened->known = library->ibv_query_device(context, &opened->attributes) == 0;
  return opened;
}

/// Whether a filter in the syntax of TUTTI_IB_HCA admits a port.
bool admits(const std::string& names, const std::string& device, int port) {
  if (names.empty()) return true;
  std::string_view rest = names;
  const bool excludes = rest.starts_with('^');
  if (excludes) rest.remove_prefix(1);
  const bool exact = rest.starts_with('=');
  if (exact) rest.remove_prefix(1);
  bool named = false;
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const std::size_t colon = one.find(':');
    const bool any_port = colon == std::string_view::npos;
    const std::string_view name = one.substr(0, colon);
    if (!any_port && one.substr(colon + 1) != std::to_string(port)) continue;
    named = named || (!name.empty() && (exact ? device == name : device.starts_with(name)));
  }
  return named != excludes;
}

/// Rate in Mbit/s of a port's ibv_port_attr width and speed; 0: unknown.
std::int64_t rate_of(std::uint8_t width, std::uint8_t speed) {
  const int links = width == 1 ? 1 : width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 0;
  switch (speed) {
    case 1: return links * 2'500;
    case 2: return links * 5'000;
    case 4:
    case 8: return links * 10'000;
    case 16: return links * 14'000;
    case 32: return links * 25'000;
    case 64: return links * 50'000;
    case 128: return links * 100'000;
    default: return 0;
  }
}

/// The port, or why it cannot be used. Errors: invalid_usage (the filter excludes it), invalid_argument (it lacks what
/// the filter asks for), system.
Result<Port> read_port(const std::shared_ptr<OpenDevice>& device, int number, const PortFilter& filter) {
  const auto unusable = [](std::string why) { return Error{.code = Code::system, .what = std::move(why)}; };
  if (!admits(filter.names, device->name, number)) return invalid_usage("excluded by TUTTI_IB_HCA");
  PortAttributes attributes{};
  if (device->library->ibv_query_port(device->context, static_cast<std::uint8_t>(number), &attributes) != 0)
    return unusable("cannot be queried");
  if (attributes.state != PortState::active) return unusable(std::string(name_of(attributes.state)));
  Port port{.device = device,
            .number = static_cast<std::uint8_t>(number),
            .link_layer = attributes.link_layer,
            .lid = attributes.lid,
            .mtu = attributes.active_mtu,
            .mbps = rate_of(attributes.active_width, attributes.active_speed),
            .numa = numa_of(device->name)};
  if (device->context->device->transport == Transport::iwarp) {
    if (auto added = add_iwarp(port, filter); !added) return unusable(added.error().text());
    return port;
  }
  const auto gid = choose_gid(device.get(), number, attributes, filter.gid_index);
  if (!gid && attributes.link_layer != LinkLayer::infiniband && filter.gid_index >= 0)
    return invalid_argument(fmt::format("has no GID {} (TUTTI_IB_GID_INDEX)", filter.gid_index));
  if (!gid && attributes.link_layer != LinkLayer::infiniband)
    return unusable("has no GID: its network interface has no address");
  if (gid) {
    port.gid = gid->gid;
    port.gid_index = static_cast<std::uint8_t>(gid->gid_index);
  }
  return port;
}

bool is_at(const Port& port, const std::string& address) {
  Gid gid{};
  in_addr four{};
  if (::inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid == port.gid;
  return ::inet_pton(AF_INET, address.c_str(), &four) == 1 && mapped(four) == port.gid;
}

}  // namespace

std::string text(const Library& library, Status status) {
  const char* const words = library.ibv_wc_status_str(status);
  const auto number = fmt::format("status {}", static_cast<int>(status));
  return fmt::format("{} ({})", words == nullptr ? number.c_str() : words, number);
}

std::string Port::text() const {
  const std::string rate = mbps == 0 ? "rate unknown" : fmt::format("{} Mbit/s", mbps);
  if (link_layer == LinkLayer::infiniband)
    return fmt::format("{} port {} (InfiniBand, {}, LID {})", device->name, number, rate, lid);
  if (iwarp) return fmt::format("{} port {} (iWARP, {}, {})", device->name, number, rate, written(gid));
  return fmt::format("{} port {} (Ethernet, {}, GID {} {})", device->name, number, rate, gid_index, written(gid));
}

Error Port::failed(std::string_view doing, int code) const {
  return {.code = Code::system, .what = fmt::format("{} on {}", doing, text()), .sys_errno = std::abs(code)};
}

std::optional<std::string> Port::trouble() const {
  PortAttributes attributes{};
  if (device->library->ibv_query_port(device->context, number, &attributes) != 0) return "cannot be queried";
  if (attributes.state == PortState::active) return std::nullopt;
  return std::string(name_of(attributes.state));
}

Result<PortList> list_ports(const std::shared_ptr<const Library>& library, const PortFilter& filter,
                            const std::vector<std::shared_ptr<OpenDevice>>& open) {
  int count = 0;
  Device** const devices = library->ibv_get_device_list(&count);
  if (devices == nullptr) return Error{.code = Code::system, .what = "list RDMA devices", .sys_errno = errno};
  PortList list;
  for (int i = 0; i < count; ++i) {
    const std::string name = library->ibv_get_device_name(devices[i]);
    auto device = open_device(library, devices[i], name, open);
    if (!device) {
      list.left_out.push_back(fmt::format("{}: cannot be opened ({})", name, std::strerror(errno)));
      list.unopened = true;
      continue;
    }
    if (!device->known) {
      list.left_out.push_back(fmt::format("{}: cannot be queried", name));
      continue;
    }
    for (int number = 1; number <= device->attributes.phys_port_cnt; ++number) {
      auto port = read_port(device, number, filter);
      if (port) {
        list.ports.push_back(*std::move(port));
        continue;
      }
      list.left_out.push_back(fmt::format("{} port {}: {}", name, number, port.error().what));
      list.excluded = list.excluded || port.error().code == Code::invalid_usage;
      list.unmet = list.unmet || port.error().code == Code::invalid_argument;
    }
  }
  library->ibv_free_device_list(devices);
  std::ranges::stable_sort(list.ports, std::greater(), &Port::mbps);
  std::stable_partition(list.ports.begin(), list.ports.end(), [](const Port& port) { return !port.iwarp; });
  return list;
}

std::size_t choose_port(std::span<const Port> ports, const std::string& own_address, std::string_view nearest,
                        int channel) {
  const auto near_one = std::ranges::find_if(ports, [&](const Port& port) { return port.device->name == nearest; });
  const auto is_near = [&](const Port& port) {
    return near_one != ports.end() && (port.device->name == nearest || (port.numa >= 0 && port.numa == near_one->numa));
  };
  std::vector<std::size_t> fastest, near;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (is_at(ports[i], own_address)) return i;
    if (ports[i].mbps != ports.front().mbps || ports[i].iwarp != ports.front().iwarp) continue;
    fastest.push_back(i);
    if (is_near(ports[i])) near.push_back(i);
  }
  const auto& from = near.empty() ? fastest : near;
  return from[static_cast<std::size_t>(channel) % from.size()];
}

sockaddr_storage socket_address(const Gid& address, std::uint16_t port) {
  sockaddr_storage storage{};
  if (maps_ipv4(address)) {
    sockaddr_in four{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    std::memcpy(&four.sin_addr, &address[12], sizeof four.sin_addr);
    std::memcpy(&storage, &four, sizeof four);
    return storage;
  }
  sockaddr_in6 six{
      .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_flowinfo = 0, .sin6_addr = {}, .sin6_scope_id = 0};
  std::memcpy(&six.sin6_addr, address.data(), address.size());
  std::memcpy(&storage, &six, sizeof six);
  return storage;
}

}  // namespace tutti::verbs
