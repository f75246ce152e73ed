// The networks. Both take float images (batch x 3 x size x size) and give scores (batch x classes).
#pragma once

#include <torch/nn.h>

#include <memory>

namespace trainer {

class Classifier : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor images) = 0;
};

// ResNet-18 with `width` channels in its first stage (the original has 64).
std::shared_ptr<Classifier> MakeResnet(int64_t width, int64_t classes);

// A pre-norm transformer encoder over square patches, mean-pooled. width: embedding size, a
// multiple of kHeads (options.h); image_size: a multiple of patch_size.
std::shared_ptr<Classifier> MakeTransformer(int64_t width, int64_t image_size, int64_t patch_size,
                                            int64_t classes);

}  // namespace trainer
