// The shared areas of some ranks that live in one process: each as its owner sees it and, on demand, mapped once more.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "transport/rank_area.h"
#include "transport/segment.h"

namespace tutti::testing {

class SharedAreas {
 public:
  explicit SharedAreas(const AreaShape& shape) : shape_(shape) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      auto base = table_.allocate(RankArea::bytes(shape), /*touch=*/false);
      EXPECT_TRUE(base) << base.error().text();
      areas_.emplace_back(*base, shape);
      areas_.back().format();
    }
  }

  const RankArea& area(int rank) const { return areas_[rank]; }

  /// The same memory at another address, as another process would see it.
  RankArea mapped_again(int rank) {
    const auto location = table_.find(&areas_[rank].header(), 1);
    auto shared = table_.share(location->name);
    EXPECT_TRUE(shared);
    auto mapping = Mapping::shared(shared->fd.get(), shared->bytes);
    EXPECT_TRUE(mapping);
    mappings_.push_back(*std::move(mapping));
    return {mappings_.back().data(), shape_};
  }

  std::vector<std::byte*> rings() const {
    std::vector<std::byte*> rings;
    for (const auto& area : areas_) rings.push_back(area.call_descriptors());
    return rings;
  }

 private:
  AreaShape shape_;
  SegmentTable table_;
  std::vector<RankArea> areas_;
  std::vector<Mapping> mappings_;
};

}  // namespace tutti::testing
