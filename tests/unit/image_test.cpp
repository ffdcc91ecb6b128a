// Has each kernel its image in the library, where there are images at all?
#include "kernels/image.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tutti {
namespace {

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

}  // namespace
}  // namespace tutti
