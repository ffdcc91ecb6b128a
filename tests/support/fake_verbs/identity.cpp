#include "identity.h"

namespace tutti::testing::fake_verbs {
namespace {

/// fe80:: and an identifier that is made of the address.
verbs::Gid link_local(std::uint32_t address) {
  verbs::Gid gid{};
  gid[0] = 0xfe;
  gid[1] = 0x80;
  for (std::size_t i = 0; i < 4; ++i) gid[12 + i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
  gid[11] = 0xff;
  gid[8] = 0x02;
  return gid;
}

verbs::Gid mapped(std::uint32_t address) {
  verbs::Gid gid{};
  gid[10] = gid[11] = 0xff;
  for (std::size_t i = 0; i < 4; ++i) gid[12 + i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
  return gid;
}

}  // namespace

PortIdentity identity_of(const Settings& settings, int device) {
  const std::uint32_t address = settings.address + static_cast<std::uint32_t>(device);
  PortIdentity port{.gids = {}, .lid = 0, .layer = verbs::LinkLayer::ethernet};
  port.gids[0] = link_local(address);
  if (settings.link == Link::ethernet) port.gids[1] = port.gids[2] = mapped(address);
  if (settings.link == Link::iwarp) port.gids[0] = mapped(address);  // no interface has the MAC of a fake device
  if (settings.link != Link::infiniband) return port;
  port.lid = static_cast<std::uint16_t>(settings.lid + device);
  port.layer = verbs::LinkLayer::infiniband;
  return port;
}

verbs::GidType type_of(const Settings& settings, std::uint32_t index) {
  if (settings.link != Link::ethernet) return verbs::GidType::infiniband;
  return index == 2 ? verbs::GidType::roce_v2 : verbs::GidType::roce_v1;
}

}  // namespace tutti::testing::fake_verbs
