// Any bytes as MSCCL XML.
#include "algorithms/algorithm.h"
#include "analysis/formats/msccl_export.h"
#include "formats/plan_file.h"
#include "fuzz/entry.h"
#include "fuzz/judge.h"
#include "support/sample_plans.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tutti::testing::judge(tutti::formats::import_msccl({reinterpret_cast<const char*>(data), size}));
  return 0;
}

std::vector<std::string> fuzz_examples() {
  using namespace tutti;
  std::vector<std::string> examples{tutti::testing::msccl_sample};
  for (const char* name : {"ring", "two_shot", "circulant"}) {
    const Shape shape{.collective = Collective::all_reduce, .ranks = 3};
    const Algorithm* algorithm = find_algorithm(name, shape);
    examples.push_back(*formats::export_msccl(algorithm->build(shape), name));
  }
  const Shape scattered{.collective = Collective::reduce_scatter, .ranks = 4};
  examples.push_back(*formats::export_msccl(algorithm::ring.build(scattered, 0), "ring"));
  return examples;
}
