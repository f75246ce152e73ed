"""A small convolutional net under Lightning, which logs its loss in each step.

usage: lightning_fit.py STEPS
"""

import sys

import pytorch_lightning as lightning
import torch
from torch import nn


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
                                 nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 10))

    def training_step(self, batch, _):
        images, labels = batch
        loss = nn.functional.cross_entropy(self.net(images), labels)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 8192

    def __getitem__(self, index):
        return torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(index)), index % 10


def main(steps):
    trainer = lightning.Trainer(max_steps=int(steps), accelerator="auto", devices=1, logger=False,
                                enable_checkpointing=False, enable_model_summary=False)
    trainer.fit(Net(), torch.utils.data.DataLoader(Images(), batch_size=64, num_workers=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
