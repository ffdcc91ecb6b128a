#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tutti {
namespace {

/// Length in bytes of the letter at the beginning of `text`; 0: not a printable letter.
std::size_t letter_bytes(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const std::size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < bytes) return 0;
  std::uint32_t code = byte(0) & (0xffU >> (bytes + 1));
  for (std::size_t at = 1; at < bytes; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(at) & 0x3f);
  }
  // excludes overlong encodings; characters up to 0x9f are controls
  constexpr std::uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  const bool turns_text = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  const bool ends_line = code == 0x2028 || code == 0x2029;
  return code < least[bytes] || code > 0x10ffff || surrogate || turns_text || ends_line ? 0 : bytes;
}

}  // namespace

std::string printable(std::string_view text, std::size_t bytes_max, Lines lines) {
  const bool cut = text.size() > bytes_max;
  text = text.substr(0, bytes_max);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = letter_bytes(text);
    const bool kept = bytes > 0 || (lines == Lines::several && text.front() == '\n');
    if (kept)
      out += text.substr(0, std::max<std::size_t>(bytes, 1));
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return cut ? out + "…" : out;
}

}  // namespace tutti
