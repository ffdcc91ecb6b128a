// Any bytes as MSCCL++ JSON.
#include "formats/plan_file.h"
#include "fuzz/entry.h"
#include "fuzz/judge.h"
#include "support/sample_plans.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tutti::testing::judge(tutti::formats::import_mscclpp({reinterpret_cast<const char*>(data), size}));
  return 0;
}

std::vector<std::string> fuzz_examples() {
  return {tutti::testing::mscclpp_sample};
}
