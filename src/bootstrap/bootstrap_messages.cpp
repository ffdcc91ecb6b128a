#include "bootstrap/bootstrap_messages.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/printable.h"

namespace tutti::bootstrap {
namespace {

Error malformed(const char* what) {
  return Error{.code = Code::remote, .what = std::string("malformed ") + what + " message"};
}

std::string_view cut(std::string_view text, std::size_t bytes_max) {
  return text.substr(0, bytes_max);
}

/// A peer's text ends up in logs and terminals. A name is one line; a failure may have several.
std::string name_from(ByteReader& reader, std::size_t bytes_max) {
  return printable(reader.text(bytes_max), bytes_max);
}
/// An address is used as it is, and appears in messages if it is useless.
bool is_printable(const std::string& address) {
  return printable(address, address_bytes_max) == address;
}
std::string words_from(ByteReader& reader) {
  return printable(reader.text(text_bytes_max), text_bytes_max, Lines::several);
}

}  // namespace

Bytes write_join(const Bootstrap::Who& who) {
  return serialized(who.rank, who.ranks, who.version, who.source, who.settings, who.limit_ms,
                    cut(who.settings_text, settings_text_bytes_max), cut(who.process, process_text_bytes_max));
}

Result<Bootstrap::Who> read_join(const Bytes& body) {
  ByteReader reader(body);
  Bootstrap::Who who;
  reader.numbers(who.rank, who.ranks, who.version, who.source, who.settings, who.limit_ms);
  who.settings_text = name_from(reader, settings_text_bytes_max);
  who.process = name_from(reader, process_text_bytes_max);
  if (!reader.done() || who.limit_ms < 0 || who.limit_ms > limit_ms_max) return malformed("join");
  return who;
}

Bytes write_welcome(const Welcome& welcome) {
  return serialized(std::uint32_t{welcome.listen}, welcome.parent, welcome.at.port,
                    cut(welcome.at.host, address_bytes_max), cut(welcome.process, process_text_bytes_max));
}

Result<Welcome> read_welcome(const Bytes& body) {
  ByteReader reader(body);
  Welcome welcome;
  const auto listen = reader.number<std::uint32_t>();
  welcome.listen = listen == 1;
  reader.numbers(welcome.parent, welcome.at.port);
  welcome.at.host = reader.text(address_bytes_max);
  welcome.process = name_from(reader, process_text_bytes_max);
  if (!reader.done() || listen > 1 || welcome.parent < -1 || !is_printable(welcome.at.host))
    return malformed("welcome");
  return welcome;
}

Bytes write_listens(const SocketAddress& at) {
  return serialized(at.port, cut(at.host, address_bytes_max));
}

Result<SocketAddress> read_listens(const Bytes& body) {
  ByteReader reader(body);
  SocketAddress at;
  at.port = reader.number<std::uint16_t>();
  at.host = reader.text(address_bytes_max);
  if (!reader.done() || !is_printable(at.host)) return malformed("listens");
  return at;
}

Bytes write_contribution(int rank, std::uint32_t round, const Blob& blob) {
  return serialized(rank, round, static_cast<std::uint32_t>(blob.size()), blob);
}

Result<Contribution> read_contribution(const Bytes& body, std::size_t blob_bytes_max) {
  ByteReader reader(body);
  Contribution contribution;
  reader.numbers(contribution.rank, contribution.round);
  const auto blob = reader.sized(blob_bytes_max);
  if (!reader.done() || contribution.rank < 0) return malformed("contribution");
  contribution.blob.assign(blob.begin(), blob.end());
  return contribution;
}

Bytes write_gathered(std::uint32_t round, const std::vector<Blob>& blobs) {
  ByteWriter writer;
  writer.number(round);
  for (const Blob& blob : blobs) writer.sized(blob);
  return std::move(writer).take();
}

Result<std::vector<Blob>> read_gathered(const Bytes& body, std::uint32_t round, int ranks, std::size_t blob_bytes_max) {
  ByteReader reader(body);
  const auto their_round = reader.number<std::uint32_t>();
  std::vector<Blob> blobs;
  for (int rank = 0; rank < ranks && reader.ok(); ++rank) {
    const auto blob = reader.sized(blob_bytes_max);
    blobs.emplace_back(blob.begin(), blob.end());
  }
  if (!reader.done() || their_round != round) return malformed("gathered");
  return blobs;
}

Bytes write_confirmation(const Confirmation& confirmation) {
  return serialized(confirmation.round, confirmation.refused);
}

Result<Confirmation> read_confirmation(const Bytes& body) {
  ByteReader reader(body);
  Confirmation confirmation;
  reader.numbers(confirmation.round, confirmation.refused);
  if (!reader.done()) return malformed("confirmation");
  return confirmation;
}

Bytes write_gone(const Gone& gone) {
  return serialized(gone.rank, gone.by, std::uint32_t{gone.left}, cut(gone.reason, text_bytes_max));
}

Result<Gone> read_gone(const Bytes& body) {
  ByteReader reader(body);
  Gone gone;
  reader.numbers(gone.rank, gone.by);
  gone.left = reader.number<std::uint32_t>() != 0;
  gone.reason = words_from(reader);
  if (!reader.done() || gone.rank < 0 || gone.by < 0) return malformed("gone");
  return gone;
}

Excused excused(const Bootstrap::Who& who, const Error& why) {
  const std::string process = who.process.empty() ? "" : fmt::format(" ({})", who.process);
  return {.rank = who.rank,
          .ranks = who.ranks,
          .why = {.code = why.code,
                  .what = fmt::format("rank {}{} could not join: {}", who.rank, process, why.text()),
                  .peer = who.rank >= 0 && who.rank < who.ranks ? who.rank : -1}};
}

Bytes write_excuse(const Excused& excuse) {
  Error why = excuse.why;
  if (why.what.size() > excuse_text_bytes_max) why.what.resize(excuse_text_bytes_max);
  const Bytes failure = write_failure(why);
  return serialized(excuse.rank, excuse.ranks, static_cast<std::uint32_t>(failure.size()), failure);
}

Result<Excused> read_excuse(const Bytes& body) {
  ByteReader reader(body);
  Excused excuse;
  reader.numbers(excuse.rank, excuse.ranks);
  const auto why = reader.sized(join_bytes_max);
  if (!reader.done() || excuse.ranks < 1 || excuse.ranks > limits::ranks_max) return malformed("excuse");
  excuse.why = read_failure(Bytes(why.begin(), why.end()));
  return excuse;
}

Bytes write_failure(const Error& error) {
  return serialized(static_cast<std::int32_t>(error.code), error.peer, cut(error.words(), text_bytes_max));
}

Error read_failure(const Bytes& body) {
  ByteReader reader(body);
  const auto code = reader.number<std::uint32_t>();
  const auto peer = reader.number<std::int32_t>();
  std::string words = words_from(reader);
  const Code known = received_code(code);
  if (!reader.done() || static_cast<std::uint32_t>(known) != code || peer < -1) return malformed("failure");
  return Error{.code = known, .what = std::move(words), .peer = peer};
}

}  // namespace tutti::bootstrap
