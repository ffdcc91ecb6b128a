// Any bytes as a recorded machine: XML of NCCL and hwloc, and NCCL's channels.
#include "base/file.h"
#include "fuzz/entry.h"
#include "fuzz/topology_use.h"
#include "topology/sources/read.h"

using namespace tutti;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const std::size_t first = text.find_first_not_of(" \t\r\n");
      first != std::string_view::npos && text[first] != '<')
    return -1;  // matrices have a target of their own
  if (const auto machine = topology::read(text, "fuzz"))
    tutti::testing::use(*machine, text);
  else
    tutti::testing::check(machine.error());
  if (const auto graphs = topology::read_graphs(text); !graphs) tutti::testing::check(graphs.error());
  return 0;
}

std::vector<std::string> fuzz_examples() {
  std::vector<std::string> examples;
  for (const char* name : {"switched-8-one-off.xml", "template-fragment.xml", "hwloc-2gpu.xml"})
    if (auto text = read_file(std::string(TUTTI_TEST_MACHINES "/") + name)) examples.push_back(*std::move(text));
  if (examples.empty()) std::abort();
  return examples;
}
