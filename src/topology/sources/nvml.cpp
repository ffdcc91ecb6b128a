#include "topology/sources/nvml.h"

#include <fmt/format.h>

namespace tutti::topology::nvml {

std::string text_of(int code) {
  const char* const words = code == 1                   ? ": not initialised"
                            : code == invalid_argument  ? ": invalid argument"
                            : code == not_supported     ? ": not supported"
                            : code == 4                 ? ": no permission"
                            : code == driver_not_loaded ? ": the driver is not loaded"
                            : code == 12                ? ": a library of the driver is missing"
                            : code == not_there         ? ": the driver is too old for this question"
                            : code == 15                ? ": the GPU is lost"
                            : code == 17                ? ": the system denies access to the GPU"
                            : code == 18                ? ": library and driver are of different versions"
                                                        : "";
  return fmt::format("error {}{}", code, words);
}

Result<Functions> Functions::load(const std::string& path) {
  Functions f;
  f.loaded = TUTTI_TRY(Dylib::open({path.c_str()}));
  // The first of the names that exists; all of them have the parameters of our prototype.
  const auto find = [&f](auto*& function, auto... names) { (void)(f.loaded.load(function, names) || ...); };
  find(f.init, "nvmlInit_v2", "nvmlInit");
  find(f.shutdown, "nvmlShutdown");
  find(f.device_count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
  find(f.handle_by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
  find(f.pci_info, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2");
  find(f.compute_capability, "nvmlDeviceGetCudaComputeCapability");
  find(f.pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  find(f.pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
  find(f.cpu_affinity, "nvmlDeviceGetCpuAffinity");
  find(f.memory_node, "nvmlDeviceGetNumaNodeId");
  find(f.link_state, "nvmlDeviceGetNvLinkState");
  find(f.link_capability, "nvmlDeviceGetNvLinkCapability");
  find(f.link_version, "nvmlDeviceGetNvLinkVersion");
  find(f.remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  find(f.remote_pci_info, "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo");
  find(f.field_values, "nvmlDeviceGetFieldValues");
  find(f.fabric_info, "nvmlDeviceGetGpuFabricInfoV");
  find(f.p2p_status, "nvmlDeviceGetP2PStatus");
  find(f.common_ancestor, "nvmlDeviceGetTopologyCommonAncestor");
  find(f.mig_mode, "nvmlDeviceGetMigMode");
  find(f.mig_count, "nvmlDeviceGetMaxMigDeviceCount");
  find(f.mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex");
  return f;
}

}  // namespace tutti::topology::nvml
