// Any text as an environment: NAME=VALUE lines, the last of one name counts.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "fuzz/entry.h"
#include "launch/launch_env.h"

namespace {

using namespace tutti;

std::map<std::string, std::string> variables(std::string_view text) {
  std::map<std::string, std::string> all;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto equals = line.find('=');
    if (equals != std::string_view::npos) all[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return all;
}

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

/// A place among the ranks, or a sentence that says what is wrong with which variable.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto all = variables({reinterpret_cast<const char*>(data), size});
  const auto launch = read_launch([&all](const char* name) -> std::optional<std::string> {
    const auto found = all.find(name);
    return found == all.end() ? std::nullopt : std::optional(found->second);
  });
  if (!launch) {
    const Error& error = launch.error();
    expect(error.code == Code::invalid_argument || error.code == Code::invalid_usage, "refused with another code");
    expect(error.what.find('_') != std::string::npos || error.what.find("RANK") != std::string::npos,
           "refused without a name");
    return 0;
  }
  const bool told = launch->ranks > 0;  // else the space knows
  expect(launch->rank >= 0 && (!told || launch->rank < launch->ranks), "a rank out of range");
  expect(told || launch->space == SpaceKind::pmix, "nobody knows how many");
  expect(!launch->root || (!launch->root->host.empty() && launch->root->port != 0), "an address of nothing");
  expect(!launch->launcher.empty(), "nobody who launched it");
  return 0;
}

std::vector<std::string> fuzz_examples() {
  return {"TUTTI_RANK=1\nTUTTI_NRANKS=4\nTUTTI_COMM_ID=[::1]:4000\n",
          "TUTTI_RANK=0\nTUTTI_NRANKS=2\nTUTTI_COMM_ID=node-a:29500\nRANK=5\nWORLD_SIZE=2\n",
          "RANK=3\nWORLD_SIZE=8\nMASTER_ADDR=10.0.0.1\nMASTER_PORT=29500\nTORCHELASTIC_RUN_ID=none\n",
          "PMI_FD=5\nPMI_RANK=1\nPMI_SIZE=2\nPMI_JOBID=kvs_1\n",
          "SLURM_PROCID=1\nSLURM_NTASKS=4\nSLURM_STEP_ID=0\nSLURM_JOB_ID=7\nSLURM_STEP_NODELIST=a[1-3],b\n"
          "SLURM_STEP_TASKS_PER_NODE=2(x2),1\nSLURM_NODEID=0\nSLURM_LOCALID=1\nSLURM_STEP_NUM_TASKS=4\n",
          "OMPI_COMM_WORLD_RANK=0\nOMPI_COMM_WORLD_SIZE=2\nPMIX_NAMESPACE=123@1\nOMPI_MCA_ess_base_jobid=77\n"};
}
