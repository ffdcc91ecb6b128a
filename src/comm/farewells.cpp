#include "comm/farewells.h"

namespace tutti {
namespace {

constexpr std::int64_t look_ns = 1'000'000;
constexpr std::int64_t limit_ns = 3'000'000'000;  // each ends within two

}  // namespace

void Farewells::add(const std::shared_ptr<const Task>& farewell) {
  const std::lock_guard lock(mutex_);
  std::erase_if(farewells_, [](const auto& known) { return known.expired(); });
  farewells_.push_back(farewell);
}

bool Farewells::over() {
  const std::lock_guard lock(mutex_);
  std::erase_if(farewells_, [](const auto& known) { return known.expired(); });
  return farewells_.empty();
}

void Farewells::wait(System& system) {
  const std::int64_t end = system.now_ns() + limit_ns;
  while (!over() && system.now_ns() < end) system.poll({}, look_ns);
}

}  // namespace tutti
