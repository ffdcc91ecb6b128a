#include "kernels/image.h"

#if defined(TUTTI_KERNEL_IMAGES)
// Each .fatbin is in the library between two symbols of its own.
#define TUTTI_IMAGE(name)                                                \
  asm(".section .rodata\n.balign 64\n"                                   \
      ".globl tutti_image_" #name "\n.hidden tutti_image_" #name         \
      "\n"                                                               \
      "tutti_image_" #name ":\n.incbin \"" TUTTI_KERNEL_IMAGES "/" #name \
      ".fatbin\"\n"                                                      \
      ".globl tutti_image_end_" #name "\n.hidden tutti_image_end_" #name \
      "\n"                                                               \
      "tutti_image_end_" #name ":\n.byte 0\n.text\n");                   \
  extern "C" const std::byte tutti_image_##name[];                       \
  extern "C" const std::byte tutti_image_end_##name[];

#define TUTTI_IMAGES(body)     \
  TUTTI_IMAGE(body##_integer)  \
  TUTTI_IMAGE(body##_floating) \
  TUTTI_IMAGE(body##_small)
#define TUTTI_KERNEL_BODY(name) TUTTI_IMAGES(name)
#include "kernels/bodies.inc"

#define TUTTI_SPAN(name) std::span<const std::byte>(tutti_image_##name, tutti_image_end_##name)
#define TUTTI_CHOOSE(body, group)                              \
  (group) == TypeGroup::floating ? TUTTI_SPAN(body##_floating) \
  : (group) == TypeGroup::small  ? TUTTI_SPAN(body##_small)    \
                                 : TUTTI_SPAN(body##_integer)
#endif

namespace tutti {
std::span<const std::byte> kernel_image([[maybe_unused]] device::Body body, [[maybe_unused]] DataType type) {
#if defined(TUTTI_KERNEL_IMAGES)
  const TypeGroup group = group_of(type);
  switch (body) {
// clang-format off
#define TUTTI_KERNEL_BODY(name) case device::Body::name: return TUTTI_CHOOSE(name, group);
#include "kernels/bodies.inc"
    // clang-format on
  }
#endif
  return {};
}

}  // namespace tutti
