#include "net/wire.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr std::size_t header_bytes = 12;
constexpr std::size_t read_bytes = 64 * 1024;

Error closed() {
  return remote_error("the other end closed the connection");
}

}  // namespace

std::shared_ptr<const Bytes> frame(FrameKind kind, const Bytes& body) {
  return std::make_shared<const Bytes>(serialized(std::uint64_t{body.size()}, static_cast<std::uint32_t>(kind), body));
}

Result<bool> Wire::flush() {
  while (!out_.empty()) {
    const auto left = std::span(*out_.front()).subspan(sent_);
    const auto moved = TUTTI_TRY(system_->send(socket_, left));
    if (moved.closed) return closed();
    if (moved.bytes == 0) return false;
    sent_ += moved.bytes;
    if (moved.bytes < left.size()) continue;
    out_.pop_front();
    sent_ = 0;
  }
  return true;
}

Result<std::optional<Bytes>> Wire::take(std::size_t bytes) {
  while (in_.size() < bytes) {
    const std::size_t had = in_.size();
    in_.resize(had + std::min(bytes - had, read_bytes));
    const auto moved = system_->receive(socket_, std::span(in_).subspan(had));
    in_.resize(had + (moved ? moved->bytes : 0));
    if (!moved) return moved.error();
    if (moved->closed) return closed();
    if (moved->bytes == 0) return std::optional<Bytes>{};
  }
  return std::optional(std::exchange(in_, {}));
}

Result<std::optional<Frame>> Wire::take_frame(std::size_t body_bytes_max) {
  if (!kind_) {
    const auto header = TUTTI_TRY(take(header_bytes));
    if (!header) return std::optional<Frame>{};
    ByteReader reader(*header);
    body_bytes_ = reader.number<std::uint64_t>();
    const auto kind = reader.number<std::uint32_t>();
    kind_ = enumerator<FrameKind>(kind);
    if (!kind_) return remote_error(fmt::format("a frame of kind {}, which does not exist", kind));
    if (body_bytes_ > body_bytes_max)
      return remote_error(fmt::format("a frame of {} bytes, at most {} expected", body_bytes_, body_bytes_max));
  }
  auto body = TUTTI_TRY(take(static_cast<std::size_t>(body_bytes_)));
  if (!body) return std::optional<Frame>{};
  return std::optional(Frame{*std::exchange(kind_, {}), *std::move(body)});
}

bool Wire::drain() {
  // Bounds the cost of one call; the next call continues.
  for (int turn = 0; turn < 16; ++turn) {
    std::array<std::byte, 4096> ignored;
    const auto moved = system_->receive(socket_, ignored);
    if (!moved || moved->closed) return false;
    if (moved->bytes == 0) break;
  }
  return true;
}

}  // namespace tutti
