// Any bytes as the line that describes a synthetic machine.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "fuzz/entry.h"
#include "fuzz/topology_use.h"
#include "topology/sources/hwloc_source.h"

using namespace tutti;

namespace {

/// Machines of thousands of CPUs take hwloc seconds, and teach nothing that small ones do not. libFuzzer makes
/// millions.
#ifdef TUTTI_LIBFUZZER
constexpr long long objects_max = 24;
#else
constexpr long long objects_max = 1000;
#endif

/// At least as many as the text asks for: the product of its numbers, without those in names, as of l3, and in brackets
/// of attributes.
long long objects_of(std::string_view text) {
  long long objects = 1;
  int depth = 0;
  for (std::size_t at = 0; at < text.size() && objects <= objects_max; ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' && depth > 0 ? -1 : 0;
    if (depth > 0 || (at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0)) continue;
    long long number = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (read.ec == std::errc::result_out_of_range) return objects_max + 1;
    if (number > 0) objects *= std::min(number, objects_max + 1);
  }
  return objects;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (objects_of(text) > objects_max) return 0;
  if (const auto machine = topology::read_synthetic(text))
    tutti::testing::use(*machine, text);
  else
    tutti::testing::check(machine.error());
  return 0;
}

std::vector<std::string> fuzz_examples() {
  return {"pack:2 numa:1 core:4 pu:2", "pack:2 [numa(memory=1GB)] l3:2 l2:4 core:1 pu:2",
          "numa:2(indexes=1,0) core:2 pu:2(indexes=2*4:1*2)", "4 2 2"};
}
