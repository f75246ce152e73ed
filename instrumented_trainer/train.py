#!/usr/bin/env python3
"""The trainer's Python twin: plain PyTorch with the same models, data and bad habits as switches.

Nothing in it knows of trainprof: no NVTX range, no hook. Its flags, defaults and output lines are
those of instrumented_trainer, so that both can be run by the same scripts.
"""

import argparse
import ctypes
import itertools
import math
import os
import pathlib
import sys
import tempfile
import time
import zlib

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

PATCH_SIZE = 8  # pixels, transformer
DEPTH = 4
HEADS = 4
CLASSES = 8
INPUT_NOISE = 0.02  # deviation of the noise added to normalised images
DRAWING_VERSION = 1  # raise it when draw_shape draws other pixels


class BasicBlock(nn.Module):
    """He et al. 2015, "Deep Residual Learning for Image Recognition", table 1, 18 layers."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class Resnet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(width)
        blocks, inputs = [], width
        for factor in (1, 2, 4, 8):
            blocks += [BasicBlock(inputs, factor * width, 1 if factor == 1 else 2)]
            inputs = factor * width
            blocks += [BasicBlock(inputs, inputs, 1)]
        self.stages = nn.Sequential(*blocks)
        self.head = nn.Linear(8 * width, classes)

    def forward(self, images):
        x = torch.relu(self.norm(self.stem(images)))
        x = self.stages(F.max_pool2d(x, kernel_size=3, stride=2, padding=1))
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp_in = nn.Linear(width, 4 * width)
        self.mlp_out = nn.Linear(4 * width, width)

    def attention(self, x):  # x: batch x tokens x width
        batch, tokens, width = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(qkv[0], qkv[1].transpose(-2, -1)) / math.sqrt(width // HEADS)
        mixed = torch.matmul(torch.softmax(scores, -1), qkv[2])
        return self.projection(mixed.transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp_out(F.gelu(self.mlp_in(self.norm2(x))))


class Transformer(nn.Module):
    """Dosovitskiy et al. 2020, with mean pooling instead of a class token."""

    def __init__(self, width, image_size, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH_SIZE, PATCH_SIZE)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)
        self.position = nn.Parameter(0.02 * torch.randn(1, (image_size // PATCH_SIZE) ** 2, width))

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(tokens + self.position)).mean(1))


def draw_shape(label, size, seed):
    """A regular polygon or star on a noisy background: uint8, size x size x 3."""
    random = torch.Generator().manual_seed(seed)
    unit = lambda: torch.rand((), generator=random).item()
    radius = size * (0.24 + 0.16 * unit())
    axis = torch.arange(size, dtype=torch.float32)
    x = (axis[None, :] - size * (0.4 + 0.2 * unit())) / radius
    y = (axis[:, None] - size * (0.4 + 0.2 * unit())) / radius
    angle = torch.atan2(y, x) + 2 * math.pi * unit()
    ripple = 0.7 + 0.3 * torch.cos((label + 2) * angle)
    inside = (torch.hypot(x, y) < ripple).float()[..., None]
    colours = torch.rand(2, 3, generator=random)
    pixels = (1 - inside) * 110 * colours[0] + inside * (140 + 115 * colours[1])
    noise = torch.randint(-24, 25, (size, size, 3), generator=random)
    return (pixels + noise).clamp(0, 255).to(torch.uint8)


def open_or_draw(root, samples, size, seed):
    """The data set's folder; drawn once, atomically, then reused."""
    folder = pathlib.Path(root) / f"python-v{DRAWING_VERSION}-{size}px-{samples}-seed{seed}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".partial-") as partial:
        target = pathlib.Path(partial) / "data"
        target.mkdir()
        for index in range(samples):
            picture = draw_shape(index % CLASSES, size, seed * samples + index).contiguous()
            pixels = ctypes.string_at(picture.data_ptr(), picture.numel())  # NumPy may be absent
            (target / f"{index:06}.z").write_bytes(zlib.compress(pixels, 6))
        try:
            target.rename(folder)
        except OSError:  # another run was faster
            if not folder.exists():
                raise
    return folder


class Shapes(Dataset):
    """Decompresses, crops, flips, jitters and scales one picture: the CPU work of a real loader."""

    def __init__(self, folder, samples, stored_size, image_size):
        self.folder, self.samples = folder, samples
        self.stored_size, self.image_size = stored_size, image_size

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        raw = bytearray(zlib.decompress((self.folder / f"{index:06}.z").read_bytes()))
        size = self.stored_size
        picture = torch.frombuffer(raw, dtype=torch.uint8).reshape(size, size, 3)
        side = int(size * (0.75 + 0.25 * torch.rand(()).item()))
        top, left = (int(torch.randint(size - side + 1, ())) for _ in range(2))
        crop = picture[top : top + side, left : left + side].permute(2, 0, 1).float()[None] / 255
        image = F.interpolate(crop, self.image_size, mode="bilinear", antialias=True)[0]
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        brightness, contrast = 0.75 + 0.5 * torch.rand(2)
        image = (((image - 0.5) * contrast + 0.5) * brightness).clamp(0, 1)
        return (image - 0.5) / 0.25, index % CLASSES


def parse_options(arguments):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser = argparse.ArgumentParser(
        prog="train.py", description="Trains a small image classifier in plain PyTorch."
    )
    add = parser.add_argument
    add("--model", choices=["resnet", "transformer"], default="resnet")
    add("--device", choices=["cpu", "cuda"], default="cpu")
    add("--steps", type=int, default=60, help="training steps")
    add("--batch", type=int, default=32, help="images in a batch")
    add("--width", type=int, default=0, help="first stage's channels (24) or embedding (64)")
    add("--lr", type=float, default=1e-3)
    add("--seed", type=int, default=1)
    add("--threads", type=int, default=1, help="threads inside an operator on the CPU")
    add("--log-every", type=int, default=10, help="print the loss every N steps")
    add("--warmup", type=int, default=5, help="first steps left out of the means")
    add("--workers", type=int, default=2, help="loader processes; 0: the loop decodes itself")
    add("--data", default=os.path.join(cache, "instrumented_trainer"))
    add("--samples", type=int, default=768, help="pictures in the data set")
    add("--stored-size", type=int, default=448, help="pixels per side as stored")
    add("--image-size", type=int, default=64, help="pixels per side that the model sees")
    add("--pin-memory", choices=["on", "off"], help="default: on with --device cuda")
    add("--amp", choices=["off", "bf16"], default="off")
    add("--cuda-graph", action="store_true", help="replay the whole step as one CUDA graph")
    add("--item-every", type=int, default=0, help="habit: loss.item() every N steps")
    add("--cpu-tensors", action="store_true", help="habit: make noise and weights on the CPU")
    add("--retain-graph", action="store_true", help="habit: backward(retain_graph=True)")
    add("--keep-graph", action="store_true", help="habit: keep each loss with its graph")
    add("--empty-cache-every", type=int, default=0, help="habit: empty_cache() every N steps")
    add("--data-parallel", action="store_true", help="habit: nn.DataParallel")
    options = parser.parse_args(arguments)
    options.width = options.width or (24 if options.model == "resnet" else 64)
    cuda = options.device == "cuda"
    options.pin_memory = cuda if options.pin_memory is None else options.pin_memory == "on"
    if cuda and not torch.cuda.is_available():
        parser.error("--device cuda: this torch finds no CUDA device")
    if options.batch > options.samples:
        parser.error("--batch must not exceed --samples: the last, partial batch is dropped")
    if options.model == "transformer" and (options.image_size % PATCH_SIZE or options.width % HEADS):
        parser.error("--model transformer: --image-size a multiple of 8, --width a multiple of 4")
    if options.cuda_graph and not cuda:
        parser.error("--cuda-graph needs --device cuda")
    if options.cuda_graph and (options.cpu_tensors or options.data_parallel):
        parser.error("--cuda-graph cannot capture --cpu-tensors or --data-parallel")
    return options


class Trainer:
    def __init__(self, options):
        self.options, self.device = options, torch.device(options.device)
        folder = open_or_draw(options.data, options.samples, options.stored_size, options.seed)
        self.model = self.make_model().to(self.device)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        if options.data_parallel:
            self.model = nn.DataParallel(self.model)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=options.lr, capturable=options.cuda_graph
        )
        self.weights = torch.ones(CLASSES, device=self.device)
        loader = DataLoader(
            Shapes(folder, options.samples, options.stored_size, options.image_size),
            batch_size=options.batch,
            shuffle=True,
            drop_last=True,
            num_workers=options.workers,
            pin_memory=options.pin_memory,
            persistent_workers=options.workers > 0,
        )
        self.batches = itertools.chain.from_iterable(itertools.repeat(loader))
        self.kept, self.last_loss, self.graph = [], math.nan, None

    def make_model(self):
        o = self.options
        if o.model == "resnet":
            return Resnet(o.width, CLASSES)
        return Transformer(o.width, o.image_size, CLASSES)

    def forward(self, images, labels):
        made_on = "cpu" if self.options.cpu_tensors else self.device
        noise = (torch.randn(images.shape, device=made_on) * INPUT_NOISE).to(self.device)
        weights = self.weights
        if self.options.cpu_tensors:
            weights = torch.ones(CLASSES).to(self.device)
        amp = self.options.amp == "bf16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=amp):
            scores = self.model(images + noise)
        return F.cross_entropy(scores.float(), labels, weight=weights)

    def update(self, images, labels):
        loss = self.forward(images, labels)
        loss.backward(retain_graph=self.options.retain_graph)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=not self.options.cuda_graph)
        return loss

    def capture(self, images, labels):
        """Three warm-up updates on a side stream, then the capture, as PyTorch's notes ask."""
        self.images, self.labels = images.clone(), labels.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.update(self.images, self.labels)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.graph_loss = self.update(self.images, self.labels)

    def replay(self, images, labels):
        if self.graph is None:
            self.capture(images, labels)
        self.images.copy_(images, non_blocking=True)
        self.labels.copy_(labels, non_blocking=True)
        self.graph.replay()
        return self.graph_loss

    def step(self, index):
        """One training step; returns the seconds waited for data."""
        o, begin = self.options, time.perf_counter()
        images, labels = next(self.batches)
        waited = time.perf_counter() - begin
        images = images.to(self.device, non_blocking=o.pin_memory)
        labels = labels.to(self.device, non_blocking=o.pin_memory)
        loss = (self.replay if o.cuda_graph else self.update)(images, labels)
        if due(index, o.log_every) or due(index, o.item_every) or index in (0, o.steps - 1):
            self.last_loss = loss.item()
        if o.keep_graph:
            self.kept.append(loss)
        if due(index, o.empty_cache_every) and self.device.type == "cuda":
            torch.cuda.empty_cache()
        return waited

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def due(index, every):
    return every > 0 and (index + 1) % every == 0


def main(arguments):
    options = parse_options(arguments)
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    trainer = Trainer(options)
    print(
        f"model {options.model}, width {options.width}, {trainer.parameters} parameters; "
        f"device {options.device}; PyTorch {torch.__version__}"
    )
    warmup = min(options.warmup, options.steps - 1)
    measured_from = logged_at = time.perf_counter()
    waited, logged_step = 0.0, 0
    for index in range(options.steps):
        if index == warmup:
            trainer.synchronize()
            measured_from, waited = time.perf_counter(), 0.0
        waited += trainer.step(index)
        done = index + 1
        if done == 1 or due(index, options.log_every) or done == options.steps:
            now = time.perf_counter()
            mean_ms = 1e3 * (now - logged_at) / (done - logged_step)
            print(f"step {done} loss {trainer.last_loss:.4f} {mean_ms:.1f} ms/step", flush=True)
            logged_at, logged_step = now, done
    trainer.synchronize()
    measured = options.steps - warmup
    step_ms = 1e3 * (time.perf_counter() - measured_from) / measured
    wait_ms = 1e3 * waited / measured
    print(
        f"mean of {measured} steps after warm-up: {step_ms:.2f} ms/step, of it {wait_ms:.2f} ms "
        f"({100 * wait_ms / step_ms:.1f} %) data wait; {1e3 * options.batch / step_ms:.1f} images/s"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
