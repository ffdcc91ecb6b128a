// Any bytes as the line that describes a synthetic machine.
#include "fuzz/entry.h"
#include "fuzz/topology_use.h"
#include "topology/hwloc_source.h"

using namespace tutti;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Machines of thousands of CPUs take hwloc seconds, and teach nothing that small ones do not.
  long long objects = 1;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] >= '0' && text[at] <= '9' && objects < 128)
      objects *= at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9' ? 10 : text[at] - '0' + 1;
  if (objects >= 128) return 0;
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
