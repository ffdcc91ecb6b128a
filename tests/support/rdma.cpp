#include "support/rdma.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <gtest/gtest.h>

namespace tutti::testing {
namespace {

constexpr std::string_view setting = "TUTTI_TRANSPORT=rdma";

}  // namespace

RdmaFabric::RdmaFabric() {
  static int made = 0;
  path_ = ::testing::TempDir() + "tutti_fabric_" + std::to_string(::getpid()) + "_" + std::to_string(made++);
}

RdmaFabric::~RdmaFabric() {
  std::error_code none;
  std::filesystem::remove(path_, none);
}

std::vector<std::string> RdmaFabric::environment() const {
  if (by_devices()) return {};
  return {std::string("TUTTI_IB_LIBRARY=") + TUTTI_FAKE_VERBS, "FAKE_VERBS_FABRIC=" + path_};
}

void RdmaFabric::join() const {
  for (const std::string& one : environment()) {
    const auto equals = one.find('=');
    ::setenv(one.substr(0, equals).c_str(), one.substr(equals + 1).c_str(), 1);
  }
}

bool RdmaFabric::by_devices() {
  const char* const asked = std::getenv("TUTTI_TEST_RDMA");
  return asked != nullptr && std::string_view(asked) == "devices";
}

bool RdmaFabric::wanted(const std::vector<std::string>& environment) {
  const char* const inherited = std::getenv("TUTTI_TRANSPORT");
  return std::ranges::find(environment, setting) != environment.end() ||
         (inherited != nullptr && std::string_view(inherited) == "rdma");
}

}  // namespace tutti::testing
