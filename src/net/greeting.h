// The first message on a connection between two ranks: the communicator, the two ranks, and the purpose.
//
//   connecting rank → listening one   greeting, then the hello of handshake.h
//   listening rank → connecting one   challenge
//   connecting rank → listening one   proof
//   listening rank → connecting one   welcome
//
// The key of the handshake is derived from the communicator's secret and the greeting, so any change of the greeting is
// detected.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "net/unique_id.h"

namespace tutti {

/// control: state changes, handled by the service threads; data: one channel.
enum class Purpose : std::uint8_t { control = 1, data = 2, first = control, last = data };

struct Greeting {
  static constexpr std::size_t bytes = 32;
  std::uint64_t communicator = 0;  ///< ConnectionKey::communicator
  std::int32_t from = 0;
  std::int32_t to = 0;
  Purpose purpose = Purpose::control;
  std::uint8_t channel = 0;
  std::uint8_t index = 0;  ///< of the channel's sockets
  bool operator==(const Greeting&) const = default;
};

Bytes write_greeting(const Greeting& greeting);
/// Errors: remote (not a greeting). Rank and channel are the other end's claims.
Result<Greeting> read_greeting(std::span<const std::byte> bytes);

/// Derived from an id's secret to authenticate connections; kept as long as the communicator lives.
struct ConnectionKey {
  std::uint64_t communicator = 0;  ///< identifies the communicator; public
  Secret secret{};

  /// Errors: system.
  static Result<ConnectionKey> of(const Secret& secret);
  /// The secret of the handshake on one connection. Errors: system.
  Result<Secret> for_greeting(std::span<const std::byte> greeting) const;
};

/// The last message of the listening end: it has taken the connection.
inline constexpr std::uint64_t welcome_value = 0x656d'6f63'6c65'7774;  // "twelcome"
inline constexpr std::size_t welcome_bytes = 8;

}  // namespace tutti
