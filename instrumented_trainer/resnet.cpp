// ResNet-18: He et al. 2015, "Deep Residual Learning for Image Recognition", table 1, 18 layers.
#include <string>

#include "instrumented_trainer/models.h"

namespace trainer {
namespace {

namespace nn = torch::nn;

nn::Conv2d Conv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  // No bias: the batch norm that follows has one.
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

class BasicBlock : public nn::Module {
 public:
  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1_(register_module("conv1", Conv(in, out, 3, stride))),
        norm1_(register_module("norm1", nn::BatchNorm2d(out))),
        conv2_(register_module("conv2", Conv(out, out, 3, 1))),
        norm2_(register_module("norm2", nn::BatchNorm2d(out))) {
    if (stride != 1 || in != out) {
      shortcut_ = register_module("shortcut",
                                  nn::Sequential(Conv(in, out, 1, stride), nn::BatchNorm2d(out)));
    }
  }

  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor y = torch::relu(norm1_(conv1_(x)));
    y = norm2_(conv2_(y));
    return torch::relu(y + (shortcut_.is_empty() ? x : shortcut_->forward(x)));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d norm2_;
  nn::Sequential shortcut_{nullptr};
};

class Resnet : public Classifier {
 public:
  Resnet(int64_t width, int64_t classes)
      : stem_(register_module("stem", Conv(3, width, 7, 2))),
        norm_(register_module("norm", nn::BatchNorm2d(width))),
        stages_(register_module("stages", nn::Sequential())),
        head_(register_module("head", nn::Linear(8 * width, classes))) {
    int64_t in = width;
    for (const int64_t factor : {1, 2, 4, 8}) {
      const int64_t out = factor * width;
      stages_->push_back(BasicBlock(in, out, factor == 1 ? 1 : 2));
      stages_->push_back(BasicBlock(out, out, 1));
      in = out;
    }
  }

  torch::Tensor forward(torch::Tensor images) override {
    torch::Tensor x = torch::relu(norm_(stem_(images)));
    x = torch::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
    x = stages_->forward(x);
    return head_(x.mean({2, 3}));
  }

 private:
  nn::Conv2d stem_;
  nn::BatchNorm2d norm_;
  nn::Sequential stages_;
  nn::Linear head_;
};

}  // namespace

std::shared_ptr<Classifier> MakeResnet(int64_t width, int64_t classes) {
  return std::make_shared<Resnet>(width, classes);
}

}  // namespace trainer
