#include "net/greeting.h"

#include <string_view>

#include "base/enumeration.h"
#include "net/digest.h"

namespace tutti {
namespace {

constexpr std::uint64_t greeting_magic = 0x3174'6565'7267'7474;  // "ttgreet1"

}  // namespace

Bytes write_greeting(const Greeting& greeting) {
  return serialized(greeting_magic, greeting.communicator, greeting.from, greeting.to,
                    static_cast<std::uint8_t>(greeting.purpose), greeting.channel, greeting.index, std::uint8_t{0},
                    std::uint32_t{0});
}

Result<Greeting> read_greeting(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Greeting greeting;
  const auto magic = reader.number<std::uint64_t>();
  reader.numbers(greeting.communicator, greeting.from, greeting.to);
  const auto purpose = enumerator<Purpose>(reader.number<std::uint8_t>());
  reader.numbers(greeting.channel, greeting.index);
  const auto reserved = reader.number<std::uint8_t>() + reader.number<std::uint32_t>();
  if (!reader.done() || magic != greeting_magic || reserved != 0 || !purpose) return remote_error("not a greeting");
  greeting.purpose = *purpose;
  return greeting;
}

Result<ConnectionKey> ConnectionKey::of(const Secret& secret) {
  constexpr std::string_view connections = "connections", communicator = "communicator";
  ConnectionKey key;
  auto derived = TUTTI_TRY(hmac_sha256(secret, std::as_bytes(std::span(connections))));
  key.secret = Secret(derived);
  wipe(derived);
  auto name = TUTTI_TRY(hmac_sha256(secret, std::as_bytes(std::span(communicator))));
  key.communicator = ByteReader(name).number<std::uint64_t>();
  return key;
}

Result<Secret> ConnectionKey::for_greeting(std::span<const std::byte> greeting) const {
  return Secret(TUTTI_TRY(hmac_sha256(secret, greeting)));
}

}  // namespace tutti
