// The compiled kernels as bytes inside the library, to be loaded by a driver.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "kernels/entries.h"
#include "plan/types.h"

namespace tutti {

/// The image (a fat binary: machine code for several processors, and PTX for later ones) that contains the entry of
/// this body and type. Empty if the library was built without a CUDA compiler. Valid forever.
std::span<const std::byte> kernel_image(device::Body body, DataType type);

namespace device {
/// "tutti_run_plan_float32". Reductions use the type's entry; a plan without reductions runs as uint8 for any type.
inline std::string entry_name(Body body, DataType type) {
  return std::string("tutti_") + name(body) + "_" + std::string(name(type));
}
}  // namespace device

}  // namespace tutti
