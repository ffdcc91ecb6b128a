// What libhwloc itself makes of the files that are written for it.
#include <hwloc.h>

#include <gtest/gtest.h>

#include "topology/sources/read.h"
#include "topology/sources/write.h"

namespace tutti::topology {
namespace {

class Loaded {
 public:
  explicit Loaded(const std::string& text) {
    good_ = hwloc_topology_init(&topology_) == 0 &&
            hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
            hwloc_topology_set_xmlbuffer(topology_, text.c_str(), static_cast<int>(text.size()) + 1) == 0 &&
            hwloc_topology_load(topology_) == 0;
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() { hwloc_topology_destroy(topology_); }
  bool good() const { return good_; }
  int count(hwloc_obj_type_t type) const { return hwloc_get_nbobjs_by_type(topology_, type); }
  /// GPUs as hwloc names them, "nvml0".
  int named(const std::string& begin) const {
    int found = 0;
    for (hwloc_obj_t device = hwloc_get_next_osdev(topology_, nullptr); device;
         device = hwloc_get_next_osdev(topology_, device))
      found += std::string(device->name).starts_with(begin) ? 1 : 0;
    return found;
  }
  /// MB/s of the first link that NVLinkBandwidth has; 0: there are none.
  unsigned long long bandwidth() const {
    unsigned count = 1;
    hwloc_distances_s* distances = nullptr;
    if (hwloc_distances_get_by_name(topology_, "NVLinkBandwidth", &count, &distances, 0) != 0 || count == 0) return 0;
    const unsigned long long first = distances->nbobjs > 1 ? distances->values[1] : 0;
    hwloc_distances_release(topology_, distances);
    return first;
  }

 private:
  hwloc_topology_t topology_ = nullptr;
  bool good_ = false;
};

TEST(HwlocWrite, LibhwlocLoadsIt) {
  for (const auto& [name, gpus, numa] : {std::tuple("switched-8.xml", 8, 2),
                                         {"cube-mesh-double.txt", 8, 2},
                                         {"all-to-all-4x3.txt", 4, 1},
                                         {"hwloc-2gpu.xml", 2, 1},
                                         {"template-fragment.xml", 1, 1}}) {
    const auto machine = read_machine(std::string(TUTTI_TEST_MACHINES "/") + name);
    ASSERT_TRUE(machine) << name;
    const Loaded loaded(write_hwloc(*machine));
    ASSERT_TRUE(loaded.good()) << name;
    EXPECT_EQ(loaded.named("nvml"), gpus) << name;
    EXPECT_EQ(loaded.count(HWLOC_OBJ_NUMANODE), numa) << name;
    EXPECT_GE(loaded.count(HWLOC_OBJ_PCI_DEVICE), gpus) << name;
    EXPECT_GE(loaded.count(HWLOC_OBJ_PU), numa) << name;
  }
}

TEST(HwlocWrite, LibhwlocSeesTheLinks) {
  const auto machine = read_machine(TUTTI_TEST_MACHINES "/all-to-all-4x3.txt");
  ASSERT_TRUE(machine);
  EXPECT_EQ(Loaded(write_hwloc(*machine)).bandwidth(), 75000u);
}

}  // namespace
}  // namespace tutti::topology
