// Plays a fuzz target with changed examples where there is no libFuzzer: the same changes on every machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz/entry.h"
#include "support/random.h"
#include "support/share.h"

namespace {

using tutti::testing::Random;

constexpr std::string_view words[] = {
    "0",  "1", "-1", "2",    "65536", "2147483647", "-2147483648", "99999999999999999999",
    "\"", "<", ">",  "{",    "}",     "[",          "]",           ",",
    "i",  "o", "s",  "null", "1e99",  "nop",        "rrcs",        "\n"};

int below(Random& random, std::size_t bound) {
  return random.below(static_cast<int>(bound));
}

/// Where a number or a word begins: changes of whole ones go deeper than changes of bytes.
std::size_t token(Random& random, const std::string& text) {
  std::size_t at = static_cast<std::size_t>(below(random, text.size()));
  while (at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '-')) --at;
  return at;
}

void change(Random& random, std::string& text) {
  if (text.empty()) text = "<";
  const std::size_t at = token(random, text);
  std::size_t end = at;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '-')) ++end;
  const std::string_view word = words[below(random, std::size(words))];
  switch (random.below(8)) {
    case 0:
    case 1:
    case 2: text.replace(at, std::max<std::size_t>(end - at, 1), word); break;
    case 3: text.replace(at, end - at, std::to_string(random.below(6) - 1)); break;
    case 4: text[at] = static_cast<char>(random.below(256)); break;
    case 5: text.insert(at, word); break;
    case 6: {  // lines change places, or are there twice, or not at all
      const std::size_t line = text.rfind('\n', at), next = text.find('\n', at);
      if (line == std::string::npos || next == std::string::npos) break;
      const std::string piece = text.substr(line, next - line);
      if (random.chance(60)) text.erase(line, next - line);
      if (random.chance(60))
        text.insert(std::min(text.find('\n', static_cast<std::size_t>(below(random, text.size()))), text.size()),
                    piece);
      break;
    }
    default: text.erase(at, static_cast<std::size_t>(below(random, 40))); break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = tutti::share_of(argc > 1 ? std::atoi(argv[1]) : 10000);
  const std::vector<std::string> examples = fuzz_examples();
  Random random(tutti::testing::test_seed());
  std::printf("replay with TUTTI_TEST_SEED=%llu\n", static_cast<unsigned long long>(tutti::testing::test_seed()));
  for (int round = 0; round < rounds; ++round) {
    std::string text = examples[static_cast<std::size_t>(below(random, examples.size()))];
    for (int changes = random.below(4); changes >= 0; --changes) change(random, text);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  }
  std::printf("%d inputs\n", rounds);
  return 0;
}
