// Any bytes as a recorded machine: XML of NCCL and hwloc, matrices, and synthetic descriptions.
#include <cstdio>
#include <cstdlib>

#include "fuzz/entry.h"
#include "topology/hwloc_source.h"
#include "topology/nccl_xml.h"
#include "topology/path.h"
#include "topology/read.h"
#include "topology/search.h"
#include "topology/warnings.h"

namespace {

using namespace tutti;

void check(const Error& error) {
  if (error.code == Code::invalid_argument && error.what.find(": ") != std::string::npos) return;
  std::fprintf(stderr, "refused without a place: %s\n", error.text().c_str());
  std::abort();
}

/// What was read can be printed, and is read again as a machine with as many GPUs.
void use(const topology::Topology& machine) {
  if (topology::warnings(machine).size() > machine.devices.size() * 1000 + 1000) std::abort();
  if (topology::tree_text(machine).empty() && !machine.devices.empty()) std::abort();
  if (machine.gpus().size() > 8 || machine.nics().size() > 16) return;
  if (topology::matrix_text(machine).empty()) std::abort();
  bool many = false;
  for (const topology::Link& link : machine.links) many = many || link.count > 32;
  if (!many) (void)topology::search(machine);
  if (machine.of_kind(topology::DeviceKind::numa).empty()) return;
  const auto again = topology::read_nccl(topology::write_nccl(machine));
  if (again && again->gpus().size() != machine.gpus().size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto machine = topology::read(text, "fuzz"))
    use(*machine);
  else
    check(machine.error());
  if (const auto graphs = topology::read_graphs(text); !graphs) check(graphs.error());
  return 0;
}

std::vector<std::string> fuzz_examples() {
  std::vector<std::string> examples;
  for (const char* name : {"switched-8-one-off.xml", "template-fragment.xml", "hwloc-2gpu.xml", "cube-mesh-double.txt",
                           "all-to-all-4x1.txt"})
    if (auto text = tutti::topology::read_text(std::string(TUTTI_TEST_MACHINES "/") + name))
      examples.push_back(*std::move(text));
  if (examples.empty()) std::abort();
  return examples;
}
