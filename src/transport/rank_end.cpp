#include "transport/rank_end.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/fixed_text.h"

namespace tutti {

Bytes RankEnd::encode() const {
  return serialized(code, std::uint8_t{ends_all}, culprit, completed,
                    std::as_bytes(std::span(words).first(std::min(words.size(), bytes_max - bytes_before_words))));
}

std::optional<RankEnd> RankEnd::decode(RankState state, const Bytes& bytes) {
  if (bytes.size() < bytes_before_words) return std::nullopt;
  ByteReader reader(bytes);
  RankEnd end{.state = state};
  end.code = reader.number<std::uint32_t>();
  end.ends_all = reader.number<std::uint8_t>() != 0;
  reader.numbers(end.culprit, end.completed);
  end.words.assign(reinterpret_cast<const char*>(bytes.data()) + bytes_before_words, bytes.size() - bytes_before_words);
  return end;
}

RankEnd RankEnd::read(const AreaHeader& header) {
  return {.state = header.state_now(),
          .code = header.failure.load(std::memory_order_relaxed),
          .ends_all = header.ends_all.load(std::memory_order_relaxed) != 0,
          .culprit = header.culprit.load(std::memory_order_relaxed),
          .completed = header.completed.load(std::memory_order_acquire),
          .words = get_text(header.message, Lines::several)};
}

void RankEnd::write(AreaHeader& header) const {
  header.failure.store(code, std::memory_order_relaxed);
  header.ends_all.store(ends_all ? 1 : 0, std::memory_order_relaxed);
  header.culprit.store(culprit, std::memory_order_relaxed);
  header.completed.store(completed, std::memory_order_relaxed);
  put_text(header.message, words);
  header.state.store(state, std::memory_order_release);
}

}  // namespace tutti
