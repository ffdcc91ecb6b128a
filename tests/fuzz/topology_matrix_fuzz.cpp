// Any bytes as a matrix of nvidia-smi topo -m.
#include "base/file.h"
#include "fuzz/entry.h"
#include "fuzz/topology_use.h"
#include "topology/sources/read.h"

using namespace tutti;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto machine = topology::read_smi(text))
    tutti::testing::use(*machine, text);
  else
    tutti::testing::check(machine.error());
  return 0;
}

std::vector<std::string> fuzz_examples() {
  std::vector<std::string> examples;
  for (const char* name : {"cube-mesh-double.txt", "all-to-all-4x1.txt"})
    if (auto text = read_file(std::string(TUTTI_TEST_MACHINES "/") + name)) examples.push_back(*std::move(text));
  if (examples.empty()) std::abort();
  examples.push_back(
      "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\tPIX\t0-3\t0\nGPU1\tNV4\t X \tSYS\t4-7\t1\n"
      "NIC0\tPIX\tSYS\t X \n\nNIC Legend:\n\n  NIC0: mlx5_0\n\n \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tNS\tX\n");
  return examples;
}
