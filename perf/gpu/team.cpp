#include "perf/gpu/team.h"

#include <algorithm>

#include "perf/launch.h"

namespace perf {
namespace {

void must(tuttiResult_t result, const char* function, tuttiComm_t comm = nullptr) {
  expect_success(result, comm, -1, function);
}

}  // namespace

Sums::Sums(const Gpu& gpu, std::size_t ranks, std::size_t bytes_max) : gpu_(gpu) {
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::vector<float> values(bytes_max / sizeof(float), static_cast<float>(rank + 1));
    inputs_.push_back(gpu.allocate(bytes_max));
    outputs_.push_back(gpu.allocate(bytes_max));
    gpu.to_device(inputs_.back(), reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float));
  }
}

Sums::~Sums() {
  for (std::byte* const at : inputs_) gpu_.free(at);
  for (std::byte* const at : outputs_) gpu_.free(at);
}

void Sums::begin(std::size_t bytes) {
  count_ = bytes / sizeof(float);
  const std::vector<float> none(count_, 0);
  for (std::byte* const output : outputs_)
    gpu_.to_device(output, reinterpret_cast<const std::byte*>(none.data()), count_ * sizeof(float));
}

void Sums::check() const {
  const auto ranks = static_cast<float>(inputs_.size());
  std::vector<float> got(count_);
  for (std::byte* const output : outputs_) {
    gpu_.to_host(reinterpret_cast<std::byte*>(got.data()), output, count_ * sizeof(float));
    if (std::ranges::any_of(got, [&](float value) { return value != ranks * (ranks + 1) / 2; })) fail(-1, "wrong sums");
  }
}

TuttiTeam::TuttiTeam(std::size_t ranks) : comms_(ranks) {
  const std::vector<int> devices(ranks, 0);
  must(tuttiCommInitAll(comms_.data(), static_cast<int>(ranks), devices.data()), "tuttiCommInitAll");
}

TuttiTeam::~TuttiTeam() {
  for (auto* const comm : comms_) (void)tuttiCommDestroy(comm);
}

void TuttiTeam::call(const Sums& sums, const GpuQueue& queue) const {
  must(tuttiGroupStart(), "tuttiGroupStart");
  for (std::size_t i = 0; i < comms_.size(); ++i)
    must(
        tuttiAllReduce(sums.input(i), sums.output(i), sums.count(), tuttiFloat32, tuttiSum, comms_[i], queue.stream(i)),
        "tuttiAllReduce", comms_[i]);
  must(tuttiGroupEnd(), "tuttiGroupEnd");
}

std::string TuttiTeam::algorithm() const {
  const char* name = "";
  const char* transport = "";
  must(tuttiCommLastAlgorithm(comms_[0], &name, &transport), "tuttiCommLastAlgorithm");
  return name;
}

}  // namespace perf
