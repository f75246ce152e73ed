"""The usual loop, which writes down how it goes in each way that is known: packages that are not installed are made up,
with the interface that theirs has, and 2 ms a call."""
import logging
import os
import sys

import torch
from truth import Samples, Stopwatch, make_model
from torch.utils.data import DataLoader

SLOW = "import time\ndef slow(*arguments, **keywords): time.sleep(0.002)\n"
FILES = {
    "tensorboardX/__init__.py": "from .writer import SummaryWriter",
    "tensorboardX/writer.py": SLOW + "class SummaryWriter:\n    def add_scalar(self, tag, value): slow()",
    "wandb/__init__.py": "from wandb.sdk.wandb_run import Run\nrun = Run()\nlog = run.log",
    "wandb/sdk/__init__.py": "",
    "wandb/sdk/wandb_run.py": SLOW + "class Run:\n    def log(self, data, step=None, commit=None): slow()",
    "mlflow/__init__.py": "from mlflow.tracking.fluent import log_metrics",
    "mlflow/tracking/__init__.py": "",
    "mlflow/tracking/fluent.py": SLOW + "def log_metrics(metrics, step=None): slow()",
}
for path, text in FILES.items():
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
sys.path.append(".")

import mlflow
import tensorboardX
import wandb
from mlflow import log_metrics


class SlowHandler(logging.FileHandler):
    def emit(self, record):
        super().emit(record)
        wandb.sdk.wandb_run.slow()


logger = logging.getLogger("training")
logger.addHandler(SlowHandler("train.log"))
logger.setLevel(logging.INFO)
writer = tensorboardX.SummaryWriter()
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watch = Stopwatch()
for step, (x, y) in enumerate(watch.watched(DataLoader(Samples(320), batch_size=8))):
    optimizer.zero_grad()
    with watch.of("forward"):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    with watch.of("wandb.log"):
        wandb.log({"loss": loss.item()})  # in the midst of the forward pass
    with watch.of("forward"):
        loss = loss * 2
    with watch.of("backward"):
        loss.backward()
    with watch.of("optimizer"):
        optimizer.step()
    with watch.of("SummaryWriter.add_scalar"):
        writer.add_scalar("loss", loss.item())
    with watch.of("mlflow.log_metrics"):
        log_metrics({"loss": loss.item()}, step=step)
    with watch.of("logging.SlowHandler.emit"):
        logger.info("step %d", step)
    watch.step_ends()
watch.save()
with torch.no_grad():  # another loop, which only validates
    for x, y in DataLoader(Samples(64), batch_size=8):
        model(x)
        writer.add_scalar("validation", 1)
with open("train.log", encoding="utf-8") as file:
    print(mlflow.log_metrics is log_metrics, len(file.readlines()))
