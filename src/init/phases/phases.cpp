#include "init/phases/phases.h"

namespace tutti::start {

std::vector<std::unique_ptr<Phase>> phases() {
  std::vector<std::unique_ptr<Phase>> all;
  const auto add = [&all]<class... All>(std::unique_ptr<All>... one) { (all.push_back(std::move(one)), ...); };
  add(std::make_unique<Greeting>(), std::make_unique<Sharing>(), std::make_unique<Describing>(),
      std::make_unique<Mapping>(), std::make_unique<Synchronizing>(), std::make_unique<Carrier>(),
      std::make_unique<Addresses>(), std::make_unique<Proving>(), std::make_unique<Comparing>(),
      std::make_unique<Reaching>(), std::make_unique<Agreement>());
  return all;
}

}  // namespace tutti::start
