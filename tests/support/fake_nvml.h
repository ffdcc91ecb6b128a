// A management library of NVIDIA's of which a test says what it answers.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tutti::testing {

struct FakeLink {
  std::string remote = {};  ///< bus id; empty: that question fails
  int remote_type = 0;      ///< 0 GPU, 1 CPU, 2 switch; -1: that question fails
  bool active = true;
  bool peer = true;  ///< may carry P2P
  unsigned version = 6;
};

struct FakeGpu {
  std::string bus_id = {};
  int compute = 90;
  std::vector<FakeLink> links = {};
  std::vector<int> p2p = {};       ///< status to each GPU; empty: that question is not supported
  std::vector<int> ancestor = {};  ///< level to each GPU; empty: the same
  std::vector<unsigned long> cpus = {};
  unsigned pcie_generation = 0, pcie_width = 0;
  int c2c_links = 0, c2c_mbps = 0;
  int fabric_state = 0, fabric_status = 0;
  unsigned clique = 0;
  int memory_node = -1;
  bool mig = false;
  int instances = 0;
};

struct FakeNvml {
  std::vector<FakeGpu> gpus = {};
  std::map<std::string, int> failing = {};  ///< function without "nvmlDevice": what it returns
  int started = 0, stopped = 0;
};

}  // namespace tutti::testing

/// The answers, for dlsym.
extern "C" tutti::testing::FakeNvml* fake_nvml();
