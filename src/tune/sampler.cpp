#include "tune/sampler.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace tutti {
namespace {

constexpr double enough_s = 0.001;    // time for measuring one number
constexpr double patience_s = 0.060;  // limit of the same, for when other work keeps taking the cores
constexpr int repeats_min = 3, repeats_max = 500;

}  // namespace

void Sampler::begin() {
  start_s_ = best_of([this] { return workers_.run([](int) {}); });
  if (disturbed_) return;
  workers_.run([this](int member) {
    // touches the pages; the value does not matter as a float
    std::fill_n(memory_[static_cast<std::size_t>(member)], bytes_, std::byte{1});
  });
}

Sampler::Sample Sampler::run(const std::function<void(int)>& work) {
  Sample spent = workers_.run(work);
  spent.seconds = std::max(spent.seconds - start_s_, 0.1 * spent.seconds);
  return spent;
}

Sampler::Sample Sampler::take(const std::function<Sample()>& once) {
  const Sample sample = once();
  ++samples_;
  if (!sample.undisturbed) ++interrupted_;
  disturbed_ = disturbed_ || workers_.late();
  return sample;
}

double Sampler::best_of(const std::function<Sample()>& once) {
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  int undisturbed = 0;
  for (int i = 0; i < repeats_max && !disturbed_ && (undisturbed < repeats_min || spent < enough_s); ++i) {
    const Sample sample = take(once);
    spent += sample.seconds;
    if (sample.undisturbed) {
      best = std::min(best, sample.seconds);
      ++undisturbed;
    }
    disturbed_ = disturbed_ || (undisturbed == 0 && spent > patience_s);
    if (spent > patience_s) break;
  }
  return best;
}

double Sampler::median_of(std::size_t uncounted, const std::function<Sample()>& once) {
  constexpr std::size_t wanted = 5;
  for (std::size_t i = 0; i < uncounted && !disturbed_; ++i) (void)take(once);
  std::vector<double> samples;
  double spent = 0;
  while (!disturbed_ && samples.size() < wanted) {
    const Sample sample = take(once);
    spent += sample.seconds;
    if (sample.undisturbed) samples.push_back(sample.seconds);
    if (spent <= patience_s) continue;
    disturbed_ = disturbed_ || samples.empty();
    break;
  }
  if (samples.empty()) return std::numeric_limits<double>::infinity();
  std::ranges::nth_element(samples, samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
  return samples[samples.size() / 2];
}

}  // namespace tutti
