// The gradients of real models: the shapes of all their parameters, in the order in which the models declare them.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <vector>

namespace perf {

/// Sizes of up to four dimensions; unused ones are 0.
struct Shape {
  std::array<std::size_t, 4> sizes{};

  constexpr std::size_t elements() const {
    std::size_t product = 1;
    for (const std::size_t size : sizes) product *= size > 0 ? size : 1;
    return product;
  }
};

using Shapes = std::vector<Shape>;

constexpr std::size_t elements_of(const Shapes& shapes) {
  return std::accumulate(shapes.begin(), shapes.end(), std::size_t{0},
                         [](std::size_t sum, const Shape& shape) { return sum + shape.elements(); });
}

/// A convolution without bias, and the scale and shift of the batch normalisation after it.
constexpr void add_convolution(Shapes& shapes, std::size_t out, std::size_t in, std::size_t kernel) {
  shapes.push_back({{out, in, kernel, kernel}});
  shapes.push_back({{out}});
  shapes.push_back({{out}});
}

constexpr void add_linear(Shapes& shapes, std::size_t out, std::size_t in) {
  shapes.push_back({{out, in}});
  shapes.push_back({{out}});
}

constexpr void add_layer_norm(Shapes& shapes, std::size_t width) {
  shapes.push_back({{width}});
  shapes.push_back({{width}});
}

/// He et al., "Deep residual learning for image recognition", 2016: 50 layers, 1000 classes.
constexpr Shapes resnet50() {
  struct Stage {
    std::size_t blocks, width;
  };
  constexpr std::array<Stage, 4> kStages{{{3, 64}, {4, 128}, {6, 256}, {3, 512}}};
  constexpr std::size_t kExpansion = 4;

  Shapes shapes;
  add_convolution(shapes, 64, 3, 7);
  std::size_t channels = 64;
  for (const Stage& stage : kStages)
    for (std::size_t block = 0; block < stage.blocks; ++block) {
      const std::size_t out = stage.width * kExpansion;
      add_convolution(shapes, stage.width, channels, 1);
      add_convolution(shapes, stage.width, stage.width, 3);
      add_convolution(shapes, out, stage.width, 1);
      if (block == 0) add_convolution(shapes, out, channels, 1);  // the shortcut
      channels = out;
    }
  add_linear(shapes, 1000, channels);
  return shapes;
}

/// Devlin et al., "BERT: pre-training of deep bidirectional transformers", 2019: base, uncased, with its pooler.
constexpr Shapes bert_base() {
  constexpr std::size_t kWords = 30522, kPositions = 512, kSegments = 2, kWidth = 768, kInner = 3072, kLayers = 12;

  Shapes shapes{{{kWords, kWidth}}, {{kPositions, kWidth}}, {{kSegments, kWidth}}};
  add_layer_norm(shapes, kWidth);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (int i = 0; i < 4; ++i) add_linear(shapes, kWidth, kWidth);  // query, key, value, output
    add_layer_norm(shapes, kWidth);
    add_linear(shapes, kInner, kWidth);
    add_linear(shapes, kWidth, kInner);
    add_layer_norm(shapes, kWidth);
  }
  add_linear(shapes, kWidth, kWidth);  // the pooler
  return shapes;
}

static_assert(resnet50().size() == 161 && elements_of(resnet50()) == 25'557'032);
static_assert(bert_base().size() == 199 && elements_of(bert_base()) == 109'482'240);

/// Consecutive gradients that are reduced together.
struct Bucket {
  std::size_t tensors = 0;
  std::size_t elements = 0;
};

/// Fills buckets like PyTorch's DistributedDataParallel: gradients in the order in which they become ready, last layer
/// first; a bucket is full once it has reached its limit. The first one is small, so that communication starts early.
constexpr std::vector<Bucket> buckets_of(const Shapes& shapes, std::size_t element_bytes, std::size_t first_limit,
                                         std::size_t limit) {
  std::vector<Bucket> buckets;
  Bucket open;
  for (auto at = shapes.rbegin(); at != shapes.rend(); ++at) {
    const auto& shape = *at;
    ++open.tensors;
    open.elements += shape.elements();
    if (open.elements * element_bytes < (buckets.empty() ? first_limit : limit)) continue;
    buckets.push_back(open);
    open = {};
  }
  if (open.tensors > 0) buckets.push_back(open);
  return buckets;
}

}  // namespace perf
