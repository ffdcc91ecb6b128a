// Passes the id through the launcher's key-value space, as text that every launcher can carry.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "init/meeting.h"
#include "net/digest.h"

namespace tutti {
namespace {

constexpr std::string_view good = "id:";
constexpr std::string_view bad = "error:";

std::string to_hex(std::span<const char> bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

/// Nothing unless all characters are hex digits.
std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned byte = 0;
    const auto [end, failed] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (failed != std::errc() || end != hex.data() + i + 2) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

Result<UniqueId> read_answer(std::string_view word) {
  const auto bytes = word.starts_with(good)  ? from_hex(word.substr(good.size()))
                     : word.starts_with(bad) ? from_hex(word.substr(bad.size()))
                                             : std::nullopt;
  if (bytes && word.starts_with(bad))
    return Error{.code = Code::remote, .what = "rank 0 could not open the meeting point: " + printable(*bytes, 400)};
  if (!bytes || bytes->size() != sizeof(std::declval<UniqueId>().encode()))
    return Error{.code = Code::remote, .what = "the text that rank 0 gave to the launcher is not an id"};
  return UniqueId::decode(bytes->data());
}

}  // namespace

Result<UniqueId> meet_in_space(KeyValueSpace& space, int rank, int nth, std::int64_t deadline_ns,
                               const std::function<Result<UniqueId>()>& make) {
  const std::string key = fmt::format("tutti-{}", nth);
  const auto about = [&](Error error) { return std::move(error).during(fmt::format("meet through {}", space.name())); };
  Result<UniqueId> id = UniqueId();
  if (rank == 0) {
    id = make();
    std::string word;
    if (id) {
      word = std::string(good) + to_hex(id->encode());
    } else {
      word = std::string(bad) + to_hex(std::string_view(id.error().text()).substr(0, 400));
    }
    if (auto put = space.put(key, word, deadline_ns); !put) return about(std::move(put).error());
  }
  if (auto met = space.fence(deadline_ns); !met) return about(std::move(met).error());
  if (rank == 0) return id;
  auto word = space.get(0, key, deadline_ns);
  if (!word) return about(std::move(word).error());
  auto read = read_answer(*word);
  if (!read) return about(std::move(read).error());
  return read;
}

}  // namespace tutti
