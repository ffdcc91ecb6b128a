// The 32 bits that travel with each write: which piece of which message it is, and how many slots are free again.
#pragma once

#include <cstdint>

namespace tutti::verbs {

/// Queue pairs have no common order, so each write says what it is: a piece of a message, several small messages
/// (`packed`), credits alone (`credit_only`), or an invitation to the message (both).
struct Immediate {
  static constexpr std::uint32_t messages = 1 << 12;  ///< message numbers wrap around here
  static constexpr std::uint32_t pieces_max = 8;      ///< of one message
  static constexpr std::uint32_t credits_max = (1 << 11) - 1;

  bool credit_only = false;   ///< carries no message
  bool packed = false;        ///< carries several small messages, of which `message` is the last
  std::uint32_t message = 0;  ///< its number, modulo `messages`
  std::uint32_t piece = 0;
  std::uint32_t last = 0;     ///< number of the message's last piece
  bool direct = false;        ///< the piece lies in the memory to which the receiver invited the message
  std::uint32_t credits = 0;  ///< messages of the other direction released since the last write

  constexpr std::uint32_t pack() const {
    return (credit_only ? 1u << 31 : 0u) | (packed ? 1u << 30 : 0u) | message % messages << 18 | piece << 15 |
           last << 12 | (direct ? 1u << 11 : 0u) | credits;
  }
  constexpr bool is_invitation() const { return credit_only && packed; }
  static constexpr Immediate unpack(std::uint32_t word) {
    return {.credit_only = (word >> 31) != 0,
            .packed = (word >> 30 & 1) != 0,
            .message = word >> 18 & (messages - 1),
            .piece = word >> 15 & (pieces_max - 1),
            .last = word >> 12 & (pieces_max - 1),
            .direct = (word >> 11 & 1) != 0,
            .credits = word & credits_max};
  }
};

}  // namespace tutti::verbs
