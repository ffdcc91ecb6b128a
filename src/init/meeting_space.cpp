// Passes the id through the launcher's key-value space, as text that every launcher can carry.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/bytes.h"
#include "init/id_server.h"
#include "init/meeting.h"
#include "net/digest.h"

namespace tutti {
namespace {

constexpr std::string_view mark = "answer:";

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

Result<UniqueId> read(std::string_view word) {
  auto bytes = word.starts_with(mark) ? from_hex(word.substr(mark.size())) : std::nullopt;
  if (!bytes) return Error{.code = Code::remote, .what = "the text that rank 0 gave to the launcher is no answer"};
  auto id = read_answer(*bytes);
  wipe(std::as_writable_bytes(std::span(*bytes)));
  return id;
}

}  // namespace

Result<UniqueId> meet_in_space(KeyValueSpace& space, int rank, int nth, std::int64_t deadline_ns,
                               const std::function<Result<UniqueId>()>& make) {
  const std::string key = fmt::format("tutti-{}", nth);
  const auto about = [&](Error error) { return std::move(error).during(fmt::format("meet through {}", space.name())); };
  Result<UniqueId> id = UniqueId();
  if (rank == 0) {
    id = make();
    const std::string word = std::string(mark) + to_hex(write_answer(id));
    if (auto put = space.put(key, word, deadline_ns); !put) return about(std::move(put).error());
  }
  if (auto met = space.fence(deadline_ns); !met) return about(std::move(met).error());
  if (rank == 0) return id;
  auto word = space.get(0, key, deadline_ns);
  if (!word) return about(std::move(word).error());
  auto told = read(*word);
  if (!told) return about(std::move(told).error());
  return told;
}

}  // namespace tutti
