#include "comm/control_links.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "comm/hello.h"

namespace tutti {
namespace {

constexpr std::int64_t farewell_ns = 2'000'000'000;
constexpr std::int64_t nap_ns = 1'000'000'000;
constexpr std::size_t head_bytes = 16;
constexpr std::size_t words_bytes_max = sizeof(AreaHeader::words) - 1;

Bytes frame_of(RankState state, Code code, int culprit, std::string_view words) {
  words = words.substr(0, words_bytes_max);
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(state));
  writer.number(static_cast<std::uint32_t>(code));
  writer.number(static_cast<std::int32_t>(culprit));
  writer.text(words);
  return std::move(writer).take();
}

bool unreachable(const Error& error) {
  return error.sys_errno == ETIMEDOUT || error.sys_errno == EHOSTUNREACH || error.sys_errno == ENETUNREACH ||
         error.sys_errno == ENETDOWN;
}

}  // namespace

MirroredHeader::MirroredHeader(const AreaShape& shape) : page_(std::make_unique<Page>()), area_(page_->bytes, shape) {
  area_.format();
  header().state.store(RankState::open, std::memory_order_release);
}

void ControlLinks::announce(RankState state, Code code, int culprit, std::string_view words) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(announced_, true)) return;
  const auto frame = std::make_shared<const Bytes>(frame_of(state, code, culprit, words));
  for (Link& link : links_) {
    if (link.ended) continue;
    link.wire.queue(frame);
    (void)link.wire.flush();  // what is wrong with a connection is found by the service thread
  }
}

void ControlLinks::leave() {
  const std::lock_guard lock(mutex_);
  leave_by_ns_ = system_.now_ns() + farewell_ns;
}

bool ControlLinks::advance() {
  const std::lock_guard lock(mutex_);
  for (Link& link : links_)
    if (!link.ended) read(link);
  if (leave_by_ns_ == 0) return true;
  // To close with something unread would tear down what is still on its way: those who stay are given time to hear.
  const bool late = system_.now_ns() >= leave_by_ns_;
  return !late && std::ranges::any_of(links_, [](const Link& link) { return !link.ended && !link.said; });
}

/// Frames are a head of fixed length, the last number of which is the length of the words that follow.
void ControlLinks::read(Link& link) {
  const auto sent = link.wire.flush();  // what came before the end is still to be read, so a failure is no news yet
  for (;;) {
    std::size_t wanted = head_bytes;
    if (link.head) wanted = ByteReader(std::span(*link.head).last(4)).number<std::uint32_t>();
    if (link.head && wanted > words_bytes_max)
      return end(link, Error{.code = Code::remote, .what = "it says what makes no sense"});
    auto bytes = link.wire.take(wanted);
    if (!bytes) return end(link, bytes.error());
    if (!*bytes) return sent ? void() : end(link, sent.error());
    if (link.head) {
      believe(link, *link.head, **bytes);
      link.head.reset();
    } else {
      link.head = **std::move(bytes);
    }
  }
}

void ControlLinks::believe(Link& link, const Bytes& head, const Bytes& words) {
  ByteReader reader(head);
  const auto state = static_cast<RankState>(reader.number<std::uint32_t>());
  const auto code = reader.number<std::uint32_t>();
  const auto culprit = reader.number<std::int32_t>();
  if (state != RankState::failed && state != RankState::aborted && state != RankState::closed)
    return end(link, Error{.code = Code::remote, .what = "it says what makes no sense"});
  if (std::exchange(link.said, true)) return;
  AreaHeader& header = link.mirror->header();
  header.failure.store(code, std::memory_order_relaxed);
  header.culprit.store(culprit, std::memory_order_relaxed);
  put_text(header.words, {reinterpret_cast<const char*>(words.data()), words.size()});
  header.state.store(state, std::memory_order_release);
}

void ControlLinks::end(Link& link, const Error& error) {
  link.ended = true;
  link.wire = Wire(system_, Socket());
  if (std::exchange(link.said, true) || leave_by_ns_ != 0) return;
  AreaHeader& header = link.mirror->header();
  const std::string why = unreachable(error) ? fmt::format("its host does not answer any more ({})", error.text())
                                             : "its process was killed or exited without leaving the communicator";
  put_text(header.words, fmt::format("{} lost: {}", link.who, why));
  header.state.store(RankState::lost, std::memory_order_release);
}

std::int64_t ControlLinks::interests(std::vector<PollItem>& items) {
  const std::lock_guard lock(mutex_);
  for (const Link& link : links_)
    if (!link.ended) items.push_back(link.wire.interest());
  return leave_by_ns_ != 0 ? leave_by_ns_ : system_.now_ns() + nap_ns;
}

}  // namespace tutti
