// A small vision transformer: Dosovitskiy et al. 2020, with mean pooling instead of a class token.
// Attention is written out in matmul and softmax, so that LibTorch 1.13 and 2.x run the same
// operators.
#include <cmath>

#include "instrumented_trainer/models.h"
#include "instrumented_trainer/options.h"

namespace trainer {
namespace {

namespace nn = torch::nn;

constexpr int64_t kDepth = 4;
constexpr int64_t kMlpFactor =
    4;  // hidden size of the MLP over the embedding size, as in the paper
constexpr double kPositionDeviation = 0.02;

class Block : public nn::Module {
 public:
  explicit Block(int64_t width)
      : norm1_(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width})))),
        qkv_(register_module("qkv", nn::Linear(width, 3 * width))),
        projection_(register_module("projection", nn::Linear(width, width))),
        norm2_(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width})))),
        mlp_in_(register_module("mlp_in", nn::Linear(width, kMlpFactor * width))),
        mlp_out_(register_module("mlp_out", nn::Linear(kMlpFactor * width, width))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = x + Attention(norm1_(x));
    return x + mlp_out_(torch::gelu(mlp_in_(norm2_(x))));
  }

 private:
  // x: batch x tokens x width
  torch::Tensor Attention(const torch::Tensor& x) {
    const int64_t batch = x.size(0);
    const int64_t tokens = x.size(1);
    const int64_t width = x.size(2);
    const int64_t head = width / kHeads;
    // 3 x batch x heads x tokens x head
    const torch::Tensor qkv =
        qkv_(x).reshape({batch, tokens, 3, kHeads, head}).permute({2, 0, 3, 1, 4});
    const torch::Tensor scores =
        torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(head));
    const torch::Tensor mixed = torch::matmul(torch::softmax(scores, -1), qkv[2]);
    return projection_(mixed.transpose(1, 2).reshape({batch, tokens, width}));
  }

  nn::LayerNorm norm1_;
  nn::Linear qkv_;
  nn::Linear projection_;
  nn::LayerNorm norm2_;
  nn::Linear mlp_in_;
  nn::Linear mlp_out_;
};

class Transformer : public Classifier {
 public:
  Transformer(int64_t width, int64_t image_size, int64_t patch_size, int64_t classes)
      : patches_(register_module(
            "patches", nn::Conv2d(nn::Conv2dOptions(3, width, patch_size).stride(patch_size)))),
        blocks_(register_module("blocks", nn::Sequential())),
        norm_(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({width})))),
        head_(register_module("head", nn::Linear(width, classes))) {
    const int64_t tokens = (image_size / patch_size) * (image_size / patch_size);
    position_ =
        register_parameter("position", torch::randn({1, tokens, width}) * kPositionDeviation);
    for (int64_t i = 0; i < kDepth; ++i) blocks_->push_back(Block(width));
  }

  torch::Tensor forward(torch::Tensor images) override {
    const torch::Tensor tokens = patches_(images).flatten(2).transpose(1, 2);
    return head_(norm_(blocks_->forward(tokens + position_)).mean(1));
  }

 private:
  nn::Conv2d patches_;
  nn::Sequential blocks_;
  nn::LayerNorm norm_;
  nn::Linear head_;
  torch::Tensor position_;
};

}  // namespace

std::shared_ptr<Classifier> MakeTransformer(int64_t width, int64_t image_size, int64_t patch_size,
                                            int64_t classes) {
  return std::make_shared<Transformer>(width, image_size, patch_size, classes);
}

}  // namespace trainer
