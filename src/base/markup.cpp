#include "base/markup.h"

namespace tutti {

std::size_t letter_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t place) {
    return place < text.size() ? static_cast<unsigned char>(text[place]) : 0;
  };
  const auto goes_on = [&](std::size_t place) { return (byte(place) & 0xc0) == 0x80; };
  if (byte(at) >= 0xc2 && byte(at) <= 0xdf && goes_on(at + 1)) return 2;
  if (byte(at) >= 0xe1 && byte(at) <= 0xec && goes_on(at + 1) && goes_on(at + 2)) return 3;
  return 0;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else if (c == '\n' || (byte >= ' ' && byte < 0x7f))
      safe += c;
    else if (const std::size_t bytes = letter_bytes(text, at); bytes > 0)
      safe += text.substr(at, bytes), at += bytes - 1;
    else
      safe += '?';
  }
  return safe;
}

}  // namespace tutti
