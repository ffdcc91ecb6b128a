// The functions of NVIDIA's management library that tutti calls. With FAKE_NVML_OLD those of a driver of 2017 alone.
#include "support/fake_nvml.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "topology/sources/nvml.h"

namespace {

using namespace tutti::topology;
using nvml::Handle;
using tutti::testing::FakeGpu;
using tutti::testing::FakeLink;

constexpr int not_supported = 3, invalid = 2;

/// What the test says that this function returns, where it says so.
int failing(const char* function) {
  const auto& all = fake_nvml()->failing;
  const auto at = all.find(function);
  return at == all.end() ? 0 : at->second;
}

/// Handles are places from 1 on; those of instances are behind 1000.
FakeGpu* gpu_of(Handle handle) {
  const auto place = reinterpret_cast<std::size_t>(handle);
  return place >= 1 && place <= fake_nvml()->gpus.size() ? &fake_nvml()->gpus[place - 1] : nullptr;
}

FakeLink* link_of(Handle handle, unsigned link) {
  FakeGpu* const gpu = gpu_of(handle);
  return gpu && link < gpu->links.size() ? &gpu->links[link] : nullptr;
}

void fill(nvml::PciInfo* info, const std::string& bus_id) {
  std::memset(info, 0, sizeof *info);
#ifdef FAKE_NVML_OLD
  std::snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%s", bus_id.c_str());
#else
  std::snprintf(info->bus_id, sizeof info->bus_id, "0000%s", bus_id.c_str());
#endif
}

}  // namespace

extern "C" {

tutti::testing::FakeNvml* fake_nvml() {
  static tutti::testing::FakeNvml answers;
  return &answers;
}

#ifdef FAKE_NVML_OLD
#define NVML(name, newer) name
#else
#define NVML(name, newer) newer
#endif
#define FAIL_IF_SAID(name) \
  if (const int code = failing(name); code != 0) return code

int NVML(nvmlInit, nvmlInit_v2)() {
  FAIL_IF_SAID("Init");
  ++fake_nvml()->started;
  return 0;
}

int nvmlShutdown() {
  ++fake_nvml()->stopped;
  return 0;
}

int NVML(nvmlDeviceGetCount, nvmlDeviceGetCount_v2)(unsigned* count) {
  FAIL_IF_SAID("GetCount");
  *count = static_cast<unsigned>(fake_nvml()->gpus.size());
  return 0;
}

int NVML(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2)(unsigned number, Handle* handle) {
  FAIL_IF_SAID("GetHandleByIndex");
  *handle = reinterpret_cast<Handle>(static_cast<std::size_t>(number) + 1);
  return 0;
}

int NVML(nvmlDeviceGetPciInfo_v2, nvmlDeviceGetPciInfo_v3)(Handle handle, nvml::PciInfo* info) {
  FAIL_IF_SAID("GetPciInfo");
  fill(info, gpu_of(handle)->bus_id);
  return 0;
}

int nvmlDeviceGetNvLinkState(Handle handle, unsigned link, int* active) {
  FAIL_IF_SAID("GetNvLinkState");
  const FakeLink* const found = link_of(handle, link);
  if (!found) return gpu_of(handle)->links.empty() ? not_supported : invalid;
  *active = found->active ? 1 : 0;
  return 0;
}

int nvmlDeviceGetNvLinkCapability(Handle handle, unsigned link, unsigned, unsigned* capable) {
  FAIL_IF_SAID("GetNvLinkCapability");
  *capable = link_of(handle, link)->peer ? 1 : 0;
  return 0;
}

int nvmlDeviceGetNvLinkVersion(Handle handle, unsigned link, unsigned* version) {
  FAIL_IF_SAID("GetNvLinkVersion");
  *version = link_of(handle, link)->version;
  return 0;
}

int NVML(nvmlDeviceGetNvLinkRemotePciInfo, nvmlDeviceGetNvLinkRemotePciInfo_v2)(Handle handle, unsigned link,
                                                                                nvml::PciInfo* info) {
  FAIL_IF_SAID("GetNvLinkRemotePciInfo");
  if (link_of(handle, link)->remote.empty()) return not_supported;
  fill(info, link_of(handle, link)->remote);
  return 0;
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetCudaComputeCapability(Handle handle, int* major, int* minor) {
  FAIL_IF_SAID("GetCudaComputeCapability");
  *major = gpu_of(handle)->compute / 10;
  *minor = gpu_of(handle)->compute % 10;
  return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(Handle handle, unsigned link, int* type) {
  FAIL_IF_SAID("GetNvLinkRemoteDeviceType");
  if (link_of(handle, link)->remote_type < 0) return not_supported;
  *type = link_of(handle, link)->remote_type;
  return 0;
}

int nvmlDeviceGetMaxPcieLinkGeneration(Handle handle, unsigned* generation) {
  *generation = gpu_of(handle)->pcie_generation;
  return *generation == 0 ? not_supported : 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(Handle handle, unsigned* width) {
  *width = gpu_of(handle)->pcie_width;
  return *width == 0 ? not_supported : 0;
}

int nvmlDeviceGetCpuAffinity(Handle handle, unsigned words, unsigned long* mask) {
  FAIL_IF_SAID("GetCpuAffinity");
  const std::vector<unsigned long>& cpus = gpu_of(handle)->cpus;
  if (cpus.empty()) return not_supported;
  for (unsigned word = 0; word < words; ++word) mask[word] = word < cpus.size() ? cpus[word] : 0;
  return 0;
}

int nvmlDeviceGetNumaNodeId(Handle handle, unsigned* node) {
  if (gpu_of(handle)->memory_node < 0) return not_supported;
  *node = static_cast<unsigned>(gpu_of(handle)->memory_node);
  return 0;
}

int nvmlDeviceGetFieldValues(Handle handle, int count, nvml::FieldValue* values) {
  FAIL_IF_SAID("GetFieldValues");
  const FakeGpu& gpu = *gpu_of(handle);
  for (nvml::FieldValue* value = values; value != values + count; ++value) {
    value->result = 0;
    const FakeLink* const link = link_of(handle, value->scope);
    switch (value->field) {
      case nvml::nvlink_state:
        value->result = link ? 0 : invalid;
        value->value.whole = link && link->active ? 1 : 0;
        break;
      case nvml::c2c_count: value->value.whole = static_cast<unsigned>(gpu.c2c_links); break;
      case nvml::c2c_status: value->value.whole = 1; break;
      case nvml::c2c_mbps: value->value.whole = static_cast<unsigned>(gpu.c2c_mbps); break;
      default: value->result = not_supported;
    }
  }
  return 0;
}

int nvmlDeviceGetGpuFabricInfoV(Handle handle, nvml::FabricInfo* info) {
  FAIL_IF_SAID("GetGpuFabricInfoV");
  if (info->version != (sizeof(nvml::FabricInfo) | 2u << 24)) return 25;
  const FakeGpu& gpu = *gpu_of(handle);
  info->state = static_cast<unsigned char>(gpu.fabric_state);
  info->status = gpu.fabric_status;
  info->clique = gpu.clique;
  std::fill(std::begin(info->cluster), std::end(info->cluster), gpu.fabric_state == 3 ? 0xab : 0);
  return 0;
}

int nvmlDeviceGetP2PStatus(Handle handle, Handle other, int, int* status) {
  FAIL_IF_SAID("GetP2PStatus");
  const std::size_t to = reinterpret_cast<std::size_t>(other) - 1;
  if (to >= gpu_of(handle)->p2p.size()) return not_supported;
  *status = gpu_of(handle)->p2p[to];
  return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(Handle handle, Handle other, int* level) {
  FAIL_IF_SAID("GetTopologyCommonAncestor");
  const std::size_t to = reinterpret_cast<std::size_t>(other) - 1;
  if (to >= gpu_of(handle)->ancestor.size()) return not_supported;
  *level = gpu_of(handle)->ancestor[to];
  return 0;
}

int nvmlDeviceGetMigMode(Handle handle, unsigned* now, unsigned* later) {
  FAIL_IF_SAID("GetMigMode");
  *now = *later = gpu_of(handle)->mig ? 1 : 0;
  return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(Handle, unsigned* count) {
  FAIL_IF_SAID("GetMaxMigDeviceCount");
  *count = 7;
  return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Handle handle, unsigned part, Handle* instance) {
  constexpr int not_found = 6;
  if (static_cast<int>(part) >= gpu_of(handle)->instances) return not_found;
  *instance = reinterpret_cast<Handle>(static_cast<std::size_t>(1000 + part));
  return 0;
}
#endif
}
