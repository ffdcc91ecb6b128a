#include "place/packed_words.h"

#include <optional>
#include <unordered_map>

namespace tutti {
namespace {

using Word = std::uint32_t;

// A token is a count and, in the lowest bit, whether it is a copy; differences, or a distance, follow. Numbers have 7
// bits a byte, the lowest first, and a difference has its sign in the lowest bit.
constexpr std::size_t copied_min = 4;  // a shorter copy may be longer than what it stands for

void put(std::vector<std::byte>& to, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) to.push_back(static_cast<std::byte>(number | 0x80));
  to.push_back(static_cast<std::byte>(number));
}

std::optional<std::uint64_t> take(std::span<const std::byte>& from) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 63 && !from.empty(); shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(from.front());
    from = from.subspan(1);
    number |= (byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return number;
  }
  return std::nullopt;
}

Word folded(Word difference) {
  return (difference << 1) ^ (0 - (difference >> 31));
}

Word unfolded(Word folded_difference) {
  return (folded_difference >> 1) ^ (0 - (folded_difference & 1));
}

std::vector<Word> differences(std::span<const Word> words) {
  std::vector<Word> result;
  for (Word before = 0; const Word word : words) {
    result.push_back(word - before);
    before = word;
  }
  return result;
}

std::uint64_t hash_at(std::span<const Word> numbers, std::size_t at) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < copied_min; ++i) hash = (hash ^ numbers[at + i]) * 0x9e37'79b9'7f4a'7c15U;
  return hash;
}

/// How many numbers at `at` are as those `distance` before.
std::size_t alike(std::span<const Word> numbers, std::size_t at, std::size_t distance) {
  std::size_t count = 0;
  while (at + count < numbers.size() && numbers[at + count] == numbers[at + count - distance]) ++count;
  return count;
}

void put_literals(std::vector<std::byte>& to, std::span<const Word> numbers) {
  if (numbers.empty()) return;
  put(to, numbers.size() << 1);
  for (const Word number : numbers) put(to, folded(number));
}

Error refused() {
  return {.code = Code::remote, .what = "numbers that are cut off, too many, or packed in another way"};
}

}  // namespace

std::vector<std::byte> packed(std::span<const Word> words) {
  const std::vector<Word> numbers = differences(words);
  std::vector<std::byte> bytes;
  std::unordered_map<std::uint64_t, std::size_t> last;  // where these numbers were last seen
  std::size_t literals = 0;                             // that are not written yet, before `at`
  for (std::size_t at = 0; at < numbers.size();) {
    std::size_t count = 0, distance = 0;
    if (at + copied_min <= numbers.size()) {
      const auto [seen, is_new] = last.try_emplace(hash_at(numbers, at), at);
      distance = at - seen->second;
      seen->second = at;
      if (!is_new) count = alike(numbers, at, distance);
    }
    if (count < copied_min) {
      ++literals;
      ++at;
      continue;
    }
    put_literals(bytes, std::span(numbers).subspan(at - literals, literals));
    literals = 0;
    put(bytes, count << 1 | 1);
    put(bytes, distance);
    at += count;
  }
  put_literals(bytes, std::span(numbers).last(literals));
  return bytes;
}

Result<std::vector<Word>> unpacked(std::span<const std::byte> bytes, std::size_t words_max) {
  std::vector<Word> numbers;
  while (!bytes.empty()) {
    const auto token = take(bytes);
    if (!token) return refused();
    const std::uint64_t count = *token >> 1;
    if (count == 0 || count > words_max - numbers.size()) return refused();
    if ((*token & 1) != 0) {
      const auto distance = take(bytes);
      if (!distance || *distance == 0 || *distance > numbers.size()) return refused();
      for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(numbers[numbers.size() - *distance]);
      continue;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto difference = take(bytes);
      if (!difference || *difference > ~Word{0}) return refused();
      numbers.push_back(unfolded(static_cast<Word>(*difference)));
    }
  }
  for (Word before = 0; Word & number : numbers) before = number += before;
  return numbers;
}

}  // namespace tutti
