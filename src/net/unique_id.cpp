#include "net/unique_id.h"

#include <arpa/inet.h>

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/random.h"
#include "net/digest.h"

namespace tutti {
namespace {

constexpr std::uint64_t magic = 0x3164'6969'7474'7574;  // "tuttiid1"
constexpr std::uint32_t version = 2;
constexpr std::size_t id_bytes = 128;
constexpr std::size_t secret_text_bytes_min = 16;

/// CRC-32 detects every change within 32 adjacent bits, and so every damaged byte.
std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0u;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb8'8320u : 0u);
  }
  return ~crc;
}

/// An address is encoded as its kind, its bytes and, if it is link-local, its interface.
enum Kind : std::uint8_t { none = 0, ipv4 = 4, ipv6 = 6, ipv6_of_interface = 7 };
constexpr std::size_t interface_bytes_max = 15;  // IFNAMSIZ without the terminator

/// Empty: not a numeric address.
Bytes write_address(const std::string& host) {
  const auto percent = std::min(host.find('%'), host.size());
  const std::string interface = host.substr(std::min(percent + 1, host.size()));
  std::array<std::byte, sizeof(in6_addr)> parsed;
  ByteWriter writer;
  if (::inet_pton(AF_INET, host.c_str(), parsed.data()) == 1) {
    writer.number<std::uint8_t>(ipv4);
    writer.raw(std::span(parsed).first(sizeof(in_addr)));
  } else if (::inet_pton(AF_INET6, host.substr(0, percent).c_str(), parsed.data()) == 1 &&
             interface.size() <= interface_bytes_max) {
    writer.number<std::uint8_t>(interface.empty() ? ipv6 : ipv6_of_interface);
    writer.raw(parsed);
    if (!interface.empty()) writer.number(static_cast<std::uint8_t>(interface.size()));
    writer.raw(std::as_bytes(std::span(interface)));
  }
  return std::move(writer).take();
}

/// Empty: an unknown kind.
std::string read_address(ByteReader& reader, std::uint8_t kind) {
  char text[INET6_ADDRSTRLEN] = "";
  if (kind == ipv4) {
    const auto bytes = reader.raw(sizeof(in_addr));
    return bytes.empty() ? "" : ::inet_ntop(AF_INET, bytes.data(), text, sizeof text);
  }
  if (kind != ipv6 && kind != ipv6_of_interface) return {};
  const auto bytes = reader.raw(sizeof(in6_addr));
  if (bytes.empty()) return {};
  std::string address = ::inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  if (kind == ipv6) return address;
  const auto interface = reader.raw(std::min<std::size_t>(reader.number<std::uint8_t>(), interface_bytes_max + 1));
  for (const std::byte byte : interface)
    if (byte <= std::byte{' '} || byte >= std::byte{0x7f}) return {};
  if (interface.empty() || interface.size() > interface_bytes_max) return {};
  return address + "%" + std::string(reinterpret_cast<const char*>(interface.data()), interface.size());
}

Error not_an_id(const std::string& why) {
  return invalid_argument("unique id: " + why);
}

}  // namespace

SocketAddress UniqueId::candidate(std::size_t nth) const {
  const std::size_t place = nth % (also.size() + 1);
  return {.host = place == 0 ? root.host : also[place - 1], .port = root.port};
}

std::string UniqueId::where() const {
  std::string hosts = root.host;
  for (const auto& host : also) hosts += " or " + host;
  return fmt::format("{}{}port {}", hosts, also.empty() ? " " : ", ", root.port);
}

EncodedId UniqueId::encode() const {
  Bytes bytes = serialized(magic, version, secret, root.port);
  constexpr std::size_t body_bytes = id_bytes - sizeof(std::uint32_t);
  const auto add = [&bytes](const std::string& host) {
    const Bytes address = write_address(host);
    if (bytes.size() + address.size() <= body_bytes) bytes.insert(bytes.end(), address.begin(), address.end());
  };
  add(root.host);
  for (const auto& host : also) add(host);
  bytes.resize(body_bytes);
  const Bytes checksum = serialized(crc32(bytes));
  bytes.insert(bytes.end(), checksum.begin(), checksum.end());

  EncodedId encoded;
  std::ranges::transform(bytes, encoded.begin(), [](std::byte byte) { return static_cast<char>(byte); });
  wipe(bytes);
  return encoded;
}

Result<UniqueId> UniqueId::decode(const char* bytes) {
  const auto all = std::as_bytes(std::span(bytes, id_bytes));
  const auto body = all.first(id_bytes - sizeof(std::uint32_t));
  ByteReader reader(body);
  if (reader.number<std::uint64_t>() != magic) return not_an_id("these bytes are not an id");
  if (const auto theirs = reader.number<std::uint32_t>(); theirs != version)
    return not_an_id(fmt::format("made by another version of tutti (format {}, here {})", theirs, version));
  if (ByteReader(all.subspan(body.size())).number<std::uint32_t>() != crc32(body)) return not_an_id("damaged");

  UniqueId id;
  std::ranges::copy(reader.raw(id.secret.size()), id.secret.begin());
  id.root.port = reader.number<std::uint16_t>();
  while (!reader.done()) {
    const auto kind = reader.number<std::uint8_t>();
    if (kind == none) break;
    std::string host = read_address(reader, kind);
    if (!reader.ok() || host.empty()) return not_an_id("damaged");
    id.root.host.empty() ? id.root.host = std::move(host) : id.also.emplace_back(std::move(host));
  }
  if (id.root.host.empty()) return not_an_id("damaged");
  return id;
}

std::string UniqueId::fingerprint() const {
  const auto encoded = encode();
  const auto digest = sha256(std::as_bytes(std::span(encoded)));
  if (!digest) return "unknown";
  std::string text;
  for (const std::byte byte : std::span(*digest).first(4)) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

Result<Secret> fresh_secret() {
  Secret secret;
  TUTTI_TRY(fill_random(secret));
  return secret;
}

Result<Secret> secret_from_text(std::string_view text) {
  if (text.size() < secret_text_bytes_min)
    return invalid_argument(
        fmt::format("the secret has {} characters, at least {} are needed", text.size(), secret_text_bytes_min));
  auto digest = TUTTI_TRY(sha256(std::as_bytes(std::span(text))));
  const Secret secret(digest);
  wipe(digest);
  return secret;
}

}  // namespace tutti
