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
  ByteWriter writer;
  writer.number(static_cast<std::int32_t>(who.rank));
  writer.number(static_cast<std::int32_t>(who.ranks));
  writer.number(static_cast<std::int32_t>(who.version));
  writer.number(who.source);
  writer.number(who.settings);
  writer.number(who.limit_ms);
  writer.text(std::string_view(who.settings_text).substr(0, settings_text_bytes_max));
  writer.text(std::string_view(who.process).substr(0, process_text_bytes_max));
  return std::move(writer).take();
}

Result<Bootstrap::Who> read_join(const Bytes& body) {
  ByteReader reader(body);
  Bootstrap::Who who;
  who.rank = reader.number<std::int32_t>();
  who.ranks = reader.number<std::int32_t>();
  who.version = reader.number<std::int32_t>();
  who.source = reader.number<std::uint64_t>();
  who.settings = reader.number<std::uint64_t>();
  who.limit_ms = reader.number<std::int64_t>();
  who.settings_text = name_from(reader, settings_text_bytes_max);
  who.process = name_from(reader, process_text_bytes_max);
  if (!reader.done() || who.limit_ms < 0 || who.limit_ms > limit_ms_max) return malformed("join");
  return who;
}

Bytes write_welcome(const Welcome& welcome) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(welcome.listen));
  writer.number(static_cast<std::int32_t>(welcome.parent));
  writer.number(welcome.at.port);
  writer.text(std::string_view(welcome.at.host).substr(0, address_bytes_max));
  writer.text(std::string_view(welcome.process).substr(0, process_text_bytes_max));
  return std::move(writer).take();
}

Result<Welcome> read_welcome(const Bytes& body) {
  ByteReader reader(body);
  Welcome welcome;
  const auto listen = reader.number<std::uint32_t>();
  welcome.listen = listen == 1;
  welcome.parent = reader.number<std::int32_t>();
  welcome.at.port = reader.number<std::uint16_t>();
  welcome.at.host = reader.text(address_bytes_max);
  welcome.process = name_from(reader, process_text_bytes_max);
  if (!reader.done() || listen > 1 || welcome.parent < -1 || !is_printable(welcome.at.host))
    return malformed("welcome");
  return welcome;
}

Bytes write_listens(const SocketAddress& at) {
  ByteWriter writer;
  writer.number(at.port);
  writer.text(std::string_view(at.host).substr(0, address_bytes_max));
  return std::move(writer).take();
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
  ByteWriter writer;
  writer.number(static_cast<std::int32_t>(rank));
  writer.number(round);
  writer.sized(blob);
  return std::move(writer).take();
}

Result<Contribution> read_contribution(const Bytes& body, std::size_t blob_bytes_max) {
  ByteReader reader(body);
  Contribution contribution;
  contribution.rank = reader.number<std::int32_t>();
  contribution.round = reader.number<std::uint32_t>();
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
  ByteWriter writer;
  writer.number(confirmation.round);
  writer.number(confirmation.refused);
  return std::move(writer).take();
}

Result<Confirmation> read_confirmation(const Bytes& body) {
  ByteReader reader(body);
  Confirmation confirmation;
  confirmation.round = reader.number<std::uint32_t>();
  confirmation.refused = reader.number<std::uint64_t>();
  if (!reader.done()) return malformed("confirmation");
  return confirmation;
}

Bytes write_gone(const Gone& gone) {
  ByteWriter writer;
  writer.number(static_cast<std::int32_t>(gone.rank));
  writer.number(static_cast<std::int32_t>(gone.by));
  writer.number(static_cast<std::uint32_t>(gone.left));
  writer.text(std::string_view(gone.reason).substr(0, text_bytes_max));
  return std::move(writer).take();
}

Result<Gone> read_gone(const Bytes& body) {
  ByteReader reader(body);
  Gone gone;
  gone.rank = reader.number<std::int32_t>();
  gone.by = reader.number<std::int32_t>();
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
  ByteWriter writer;
  writer.number(static_cast<std::int32_t>(excuse.rank));
  writer.number(static_cast<std::int32_t>(excuse.ranks));
  Error why = excuse.why;
  if (why.what.size() > excuse_text_bytes_max) why.what.resize(excuse_text_bytes_max);
  writer.sized(write_failure(why));
  return std::move(writer).take();
}

Result<Excused> read_excuse(const Bytes& body) {
  ByteReader reader(body);
  Excused excuse;
  excuse.rank = reader.number<std::int32_t>();
  excuse.ranks = reader.number<std::int32_t>();
  const auto why = reader.sized(join_bytes_max);
  if (!reader.done() || excuse.ranks < 1 || excuse.ranks > limits::ranks_max) return malformed("excuse");
  excuse.why = read_failure(Bytes(why.begin(), why.end()));
  return excuse;
}

Bytes write_failure(const Error& error) {
  ByteWriter writer;
  writer.number(static_cast<std::int32_t>(error.code));
  writer.number(static_cast<std::int32_t>(error.peer));
  writer.text(std::string_view(error.words()).substr(0, text_bytes_max));
  return std::move(writer).take();
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
