#include "comm/unique_id.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <span>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/random.h"
#include "comm/digest.h"

namespace tutti {
namespace {

constexpr std::uint64_t magic = 0x3164'6969'7474'7574;  // "tuttiid1"
constexpr std::uint32_t version = 1;
constexpr std::size_t id_bytes = 128;
constexpr std::size_t secret_text_bytes_min = 16;

/// CRC-32 finds every change of up to 32 neighbouring bits, so every damaged byte.
std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0u;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb8'8320u : 0u);
  }
  return ~crc;
}

bool numeric_address(const std::string& host) {
  std::array<std::byte, sizeof(in6_addr)> parsed;
  const std::string without_scope = host.substr(0, host.find('%'));
  return ::inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 ||
         ::inet_pton(AF_INET6, without_scope.c_str(), parsed.data()) == 1;
}

Error not_an_id(const std::string& why) {
  return Error{.code = Code::invalid_argument, .what = "unique id: " + why};
}

}  // namespace

std::array<char, 128> UniqueId::encode() const {
  assert(root.host.size() <= host_bytes_max);
  ByteWriter writer;
  writer.number(magic);
  writer.number(version);
  writer.raw(secret);
  writer.number(root.port);
  writer.text(root.host);
  Bytes bytes = std::move(writer).take();
  bytes.resize(id_bytes - sizeof(std::uint32_t));
  ByteWriter checksum;
  checksum.number(crc32(bytes));
  bytes.insert(bytes.end(), checksum.bytes().begin(), checksum.bytes().end());

  std::array<char, id_bytes> encoded;
  std::ranges::transform(bytes, encoded.begin(), [](std::byte byte) { return static_cast<char>(byte); });
  wipe(bytes);
  return encoded;
}

Result<UniqueId> UniqueId::decode(const char* bytes) {
  const auto all = std::as_bytes(std::span(bytes, id_bytes));
  const auto body = all.first(id_bytes - sizeof(std::uint32_t));
  ByteReader reader(body);
  if (reader.number<std::uint64_t>() != magic) return not_an_id("these bytes are none");
  if (const auto theirs = reader.number<std::uint32_t>(); theirs != version)
    return not_an_id(fmt::format("made by another version of tutti (format {}, here {})", theirs, version));
  if (ByteReader(all.subspan(body.size())).number<std::uint32_t>() != crc32(body)) return not_an_id("damaged");

  UniqueId id;
  std::ranges::copy(reader.raw(id.secret.size()), id.secret.begin());
  id.root.port = reader.number<std::uint16_t>();
  id.root.host = reader.text(host_bytes_max);
  if (!reader.ok() || !numeric_address(id.root.host)) return not_an_id("damaged");
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
  if (auto done = fill_random(secret); !done) return std::move(done).error();
  return secret;
}

Result<Secret> secret_from_text(std::string_view text) {
  if (text.size() < secret_text_bytes_min)
    return Error{.code = Code::invalid_argument,
                 .what = fmt::format("the secret has {} characters, at least {} are needed", text.size(),
                                     secret_text_bytes_min)};
  return sha256(std::as_bytes(std::span(text)));
}

}  // namespace tutti
