// Has each kernel its image in the library, where there are images at all?
#include "kernels/image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace tutti {
namespace {

constexpr const char* name_of(TypeGroup group) {
  return group == TypeGroup::floating ? "floating" : group == TypeGroup::small ? "small" : "integer";
}

TEST(KernelImage, IsAFatBinary) {
  const bool built = !kernel_image(device::Body::run_plan, DataType::float32).empty();
  for (const device::Body body : device::bodies)
    for (int type = 0; type < device_type_count; ++type) {
      const auto image = kernel_image(body, static_cast<DataType>(type));
      ASSERT_EQ(image.empty(), !built);
      if (!built) continue;
      std::uint32_t magic = 0;
      ASSERT_GT(image.size(), 1000u);
      std::memcpy(&magic, image.data(), sizeof magic);
      EXPECT_EQ(magic, 0xba55ed50u);
    }
  if (!built) GTEST_SKIP() << "built without nvcc";
}

/// Not what a compiler's cache remembers of an earlier build.
TEST(KernelImage, IsWhatWasCompiledLast) {
  const std::string folder = TUTTI_KERNEL_IMAGES;
  if (kernel_image(device::Body::run_plan, DataType::float32).empty()) GTEST_SKIP() << "built without nvcc";
  for (const device::Body body : device::bodies)
    for (int i = 0; i < device_type_count; ++i) {
      const auto type = static_cast<DataType>(i);
      const std::string path = folder + "/" + name(body) + "_" + name_of(group_of(type)) + ".fatbin";
      std::ifstream file(path, std::ios::binary);
      const std::string compiled{std::istreambuf_iterator<char>(file), {}};
      const auto image = kernel_image(body, type);
      EXPECT_TRUE(compiled == std::string(reinterpret_cast<const char*>(image.data()), image.size())) << path;
    }
}

}  // namespace
}  // namespace tutti
